"""The schemas that are made from annotations. These tests need no binary."""

from __future__ import annotations

import dataclasses
import enum
import unittest
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from haft import ToolSchemaError, tool


class Speed(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@dataclasses.dataclass(frozen=True)
class Order:
    item: str
    count: int = 1


class Place(TypedDict):
    city: Annotated[str, "the name of the city"]
    country: NotRequired[str]


@dataclasses.dataclass
class Node:
    children: list[Node]


def schema_of(kind: Any) -> Any:
    def function(value: Any) -> None:
        """Does nothing."""

    function.__annotations__["value"] = kind
    return tool(function).schema["properties"]["value"]


class SchemaTest(unittest.TestCase):
    def test_tool_describes_its_parameters(self) -> None:
        @tool
        def search(pattern: Annotated[str, "a regular expression"], limit: int = 10, exact: bool | None = None) -> str:
            """Searches the index."""
            return pattern

        self.assertEqual(search.name, "search")
        self.assertEqual(search.description, "Searches the index.")
        self.assertEqual(search("a", limit=2), "a")
        self.assertEqual(
            search.schema,
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "a regular expression"},
                    "limit": {"type": "integer", "default": 10},
                    "exact": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
                },
                "required": ["pattern"],
                "additionalProperties": False,
            },
        )

    def test_schema_of_each_kind_of_type(self) -> None:
        order = {
            "type": "object",
            "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        }
        place = {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "the name of the city"},
                "country": {"type": "string"},
            },
            "required": ["city"],
            "additionalProperties": False,
        }
        for kind, wanted in [
            (str, {"type": "string"}),
            (float, {"type": "number"}),
            (Any, {}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Speed, {"enum": ["fast", "slow"]}),
            (Order, order),
            (Place, place),
            (list[Order], {"type": "array", "items": order}),
        ]:
            with self.subTest(kind=kind):
                self.assertEqual(schema_of(kind), wanted)

    def test_errors_name_the_function_and_the_parameter(self) -> None:
        def untyped(value) -> None: ...  # type: ignore[no-untyped-def]

        def wrong(value: complex) -> None: ...

        def nested(value: list[dict[int, str]]) -> None: ...

        def variadic(*values: int) -> None: ...

        def recursive(value: Node) -> None: ...

        def unresolved(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        cases: list[tuple[Callable[..., None], str]] = [
            (untyped, "untyped(value): the parameter has no annotation"),
            (wrong, "wrong(value): no JSON schema can be made for complex"),
            (nested, "nested(value)[]: the keys of a dict must be str, not int"),
            (variadic, "variadic(values): a tool needs parameters with names, not variadic positional"),
            (recursive, "recursive(value): Node contains itself"),
            (unresolved, "unresolved: the annotations cannot be read: name 'Missing' is not defined"),
        ]
        for function, message in cases:
            with self.subTest(message=message), self.assertRaises(ToolSchemaError) as caught:
                tool(function)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(ToolSchemaError, "is not a name of a tool"):
            tool(name="a b")(wrong)


class CallTest(unittest.IsolatedAsyncioTestCase):
    async def test_arguments_are_converted(self) -> None:
        seen: list[Any] = []

        @tool
        def place(order: Order, speed: Speed, tags: list[str], where: Place | None = None, ratio: float = 0.5) -> None:
            """Places an order."""
            seen.extend([order, speed, tags, where, ratio])

        await place.call({"order": {"item": "tea"}, "speed": "slow", "tags": ["a"], "where": {"city": "Paris"}, "ratio": 1})
        self.assertEqual(seen, [Order("tea", 1), Speed.SLOW, ["a"], {"city": "Paris"}, 1.0])
        self.assertIsInstance(seen[4], float)

    async def test_wrong_arguments_are_named(self) -> None:
        @tool
        async def place(order: Order, count: int = 1, flag: Literal[True] = True, size: int | None = None) -> Order:
            """Places an order."""
            return order

        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "`order` is missing"),
            ({"order": {}}, "`order.item` is missing"),
            ({"order": {"item": 3}}, "`order.item` must be a string, not 3"),
            ({"order": {"item": "a"}, "count": "2"}, "`count` must be an integer, not '2'"),
            ({"order": {"item": "a"}, "count": True}, "`count` must be an integer, not True"),
            ({"order": {"item": "a"}, "flag": 1}, "`flag` must be one of [True], not 1"),
            ({"order": {"item": "a"}, "size": "x"}, "`size` must be an integer, not 'x'; or `size` must be null, not 'x'"),
            ({"order": {"item": "a"}, "other": 1}, "`other` is unknown; known are: order, count, flag, size"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments), self.assertRaises(ValueError) as caught:
                await place.call(arguments)
            self.assertEqual(str(caught.exception), message)
        self.assertEqual(await place.call({"order": {"item": "a", "count": 2.0}}), '{"item": "a", "count": 2}')


if __name__ == "__main__":
    unittest.main()
