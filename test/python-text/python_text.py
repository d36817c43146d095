"""Python's own str() and repr() of values, as the tests of src/python-text.ts need them.

Run with "record" it prints answers.json: values that were easy to get wrong. Run with "answer" it reads a JSON list of
specs and prints the answers to them. A spec is null, true, false, a text, a list of specs, or an object with one member:
"int" or "float" (as text), or "dict" (a list of pairs).
"""

import json
import sys
import unicodedata

INTS = [0, 1, -1, 6557, 2**53 - 1, 2**53, -(2**53), 2**64, 10**22]
FLOATS = """0.0 -0.0 1.0 -1.0 0.5 1.5 100.0 123.456 -2.5e-3 0.1 0.3 0.0001 0.00012 0.00001 1e-5 1e-7 1.5e-7 -1e-7 5e-324
    1e15 123456789012345.6 9007199254740993.0 1234567890123456.0 9999999999999998.0 1e16 1.5e16 12345678901234567.0 1e17
    1e21 1e22 1.7976931348623157e308 1e100 -1e100 2.2250738585072014e-308 inf -inf nan""".split()
TEXTS = [
    "", "prod", "it's", 'a "quoted" one', "both ' and \"", "back\\slash", "a\nb", "a\r\tb", "\x00\x01\x1f\x7f", "\x80\x9f\xa0",
    "\xad", "é", "ÿ", "\u0100", "\u200b\u200e\u2028\u2029", "\u3000", "\ufeff", "\ue000", "\uffff", "日本語", "😀",
    "\U0001f468\u200d\U0001f469", "\U000e0001", "\U0010ffff", "\ud800", "\udc80x", "a b", "\t ",
]
COMPOUNDS = [
    [], [[]], [[], [{}]], {}, {"a": {}}, [None, True, False], [1, 2.0, "x"], [1e-7, [1e16, "a\nb"]], {"a": "it's", "b": []},
    {"b": 1, "a": [None, {"c": -0.0}]}, {"7": 1, "1": 2}, {"x\ny": "\u2028"}, {"__proto__": 1, "": 2},
    [["'"], ['"'], ["'\""]], {"deep": [[[[[[[["x"]]]]]]]]},
]


def spec_of(value):
    """The spec of a value."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, list):
        return [spec_of(item) for item in value]
    return {"dict": [[spec_of(name), spec_of(item)] for name, item in value.items()]}


def value_of(spec):
    """The value of a spec."""
    if spec is None or isinstance(spec, (bool, str)):
        return spec
    if isinstance(spec, list):
        return [value_of(item) for item in spec]
    if "int" in spec:
        return int(spec["int"])
    if "float" in spec:
        return float(spec["float"])
    return {value_of(name): value_of(item) for name, item in spec["dict"]}


def answer(spec):
    """What Python says of a value, and the Unicode characters in it that this Python does not know."""
    value = value_of(spec)
    text = json.dumps(spec, ensure_ascii=False)
    unknown = "".join(sorted({one for one in text if unicodedata.category(one) == "Cn"}))
    return {"value": spec, "str": str(value), "repr": repr(value), "unknown": unknown}


if sys.argv[1] == "record":
    values = [None, True, False, *INTS, *map(float, FLOATS), *TEXTS, *([text] for text in TEXTS), *COMPOUNDS]
    lines = [json.dumps({name: item for name, item in answer(spec_of(value)).items() if name != "unknown"}) for value in values]
    print("[\n  " + ",\n  ".join(lines) + "\n]")
else:
    print(json.dumps([answer(spec) for spec in json.load(sys.stdin)]))
