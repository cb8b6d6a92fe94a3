"""Asks the report room, loaded into this interpreter, where it was called from, in many ways, and compares with what the interpreter says.

Prints one line: "N places", or the first difference. Run by check.py with the library preloaded; "unknown" as argument: no frames are expected.
"""
import asyncio
import ctypes
import sys
import threading

library = ctypes.CDLL(None)
library.fake_start()
library.fake_capture_ns.restype = ctypes.c_double
text = ctypes.create_string_buffer(1 << 16)
places = 0
KNOWN = len(sys.argv) < 2
FRAMES = 8  # the report keeps that many


def seen():
    library.fake_python(text, len(text))
    return text.value.decode().splitlines()


def expected(frame):
    lines = []
    while frame and len(lines) < FRAMES - 2:
        lines.append(f"{frame.f_code.co_qualname} {frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return lines


def look():
    """Its callers must be as the interpreter says."""
    global places
    told = seen()
    places += 1
    if not KNOWN:
        return sys.exit(f"frames of an unknown interpreter: {told}") if told else None
    true = expected(sys._getframe(1))
    if [line.split()[0] for line in told[:2]] != ["seen", "look"] or told[2:] != true:
        sys.exit(f"told {told[2:]}\ntrue {true}")


class Thing:
    value = property(lambda self: look())

    def __enter__(self):
        look()

    def __exit__(self, *exception):
        look()

    def __call__(self, *arguments):
        look()


def generator():
    yield look()
    yield look()


async def coroutine():
    look()
    await asyncio.sleep(0)
    look()


def deep(levels):
    if levels:
        deep(levels - 1)
    else:
        look()


def after_raise():
    try:
        raise ValueError
    except ValueError:
        look()
    finally:
        look()


def main():
    look(); look()
    for _ in range(3):
        look()
    [look() for _ in range(2)]
    list(map(lambda _: look(), range(2)))
    (Thing()
     (1,
      2))
    Thing().value
    with Thing():
        look()
    for _ in generator():
        pass
    asyncio.run(coroutine())
    sorted([2, 1], key=lambda value: look() or value)
    after_raise()
    for levels in (1, 5, 7, 8, 20, 200):
        deep(levels)
    # Long functions, lines that jump forth and back, and code objects that take each other's place in memory.
    for round_ in range(200):
        lines = ["def made():", "    x = (", *["        1 +"] * (round_ % 70), "        0)", *["    x += 1"] * (round_ * 3 % 500), "    look()",
                 "    while x:", "        x = 0", "        look()", "made()"]
        exec(compile("\n" * (round_ % 5) + "\n".join(lines), f"<made {round_}>", "exec"), {"look": look})
    # Another thread has no frames here, whatever it does.
    told = []
    thread = threading.Thread(target=lambda: told.extend(seen()))
    thread.start()
    thread.join()
    if told:
        sys.exit(f"frames of another thread: {told}")
    if KNOWN:
        print(f"{places} places, {library.fake_capture_ns(20000):.0f} ns")
    else:
        print("no frames")


main()
