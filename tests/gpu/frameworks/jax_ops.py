"""JAX: compiled functions, gradients, random numbers, transfers; prints hashes."""
import hashlib
import os

os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
import jax.numpy as jnp
import numpy as np


def show(name, array):
    array = np.ascontiguousarray(np.asarray(array))
    print(name, array.shape, hashlib.sha256(array.tobytes()).hexdigest()[:16], flush=True)


print(jax.devices()[0].platform)
x = jnp.arange(10000, dtype=jnp.float32).reshape(100, 100)
show("arithmetic", x * 2 + 1)
show("matmul", jnp.matmul(x, x.T, precision="highest"))
show("compiled", jax.jit(lambda v: jnp.tanh(v).sum(axis=1))(x / 1e4))


def loss(w, v, y):
    return jnp.mean((jnp.tanh(v @ w) - y) ** 2)


step = jax.jit(lambda w, v, y: w - 0.1 * jax.grad(loss)(w, v, y))
key = jax.random.PRNGKey(0)
w = jax.random.normal(key, (20, 5))
v, y = jax.random.normal(key, (200, 20)), jnp.ones((200, 5)) * 0.3
for i in range(30):
    w = step(w, v, y)
show("descent", w)
print("loss", float(loss(w, v, y)).hex())
big = np.arange(1 << 23, dtype=np.int32)
show("large copy", jax.device_put(big)[::-1])
values = [int(jnp.int32(i) + 1) for i in range(100)]
print("scalars", sum(values))
show("loop", jax.lax.fori_loop(0, 50, lambda i, a: a * 1.01 + i, jnp.ones(300)))
show("sort", jnp.sort(jax.random.uniform(key, (5000,))))
