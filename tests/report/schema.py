"""The part of JSON Schema that docs/report-schema.json uses."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def errors(value, schema, root, where="report"):
    """Yields a line for each way in which `value` is not what `schema` says."""
    if "$ref" in schema:
        target = root
        for step in schema["$ref"].lstrip("#/").split("/"):
            target = target[step]
        yield from errors(value, target, root, where)
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not one of {schema['enum']}"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        yield f"{where}: {value!r} is not {' or '.join(names)}"
        return
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{where}: {value} is below {schema['minimum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not look like {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name} is missing"
        for name, member in value.items():
            known = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if known is None:
                yield f"{where}.{name} is not described"
            else:
                yield from errors(member, known, root, f"{where}.{name}")
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from errors(item, schema.get("items", {}), root, f"{where}[{place}]")
