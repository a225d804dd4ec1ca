"""A client for the conformance suite, made of the Python SDK: `suite_client.py URL`.

The suite says in the environment which scenario it plays and which revision it speaks.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp.client.client import Client

VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
SAMPLE = {"string": "text", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}


async def fill_in(_context, params):
    """Accepts a form with its defaults."""
    schema = params.requested_schema if hasattr(params, "requested_schema") else {}
    fields = schema.get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    for name in schema.get("required", []):
        content.setdefault(name, SAMPLE[fields[name].get("type", "string")])
    return types.ElicitResult(action="accept", content=content)


def arguments(tool, tools):
    if tool.name == "echo_schema" or "schema" in tool.input_schema.get("properties", {}):
        others = [other for other in tools if other is not tool]
        return {"schema": others[0].input_schema if others else {}}
    fields = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", [])
    return {name: SAMPLE.get(fields.get(name, {}).get("type"), "text") for name in required}


async def main(url):
    mode = "legacy" if VERSION < "2026" else "auto"
    async with Client(url, mode=mode, elicitation_callback=fill_in, read_timeout_seconds=20) as client:
        tools = (await client.list_tools()).tools
        planned = CONTEXT.get("toolCalls")
        if planned is None:
            planned = [{"name": tool.name, "arguments": arguments(tool, tools)} for tool in tools]
        for call in planned:
            try:
                await client.call_tool(call["name"], call["arguments"])
            except Exception as error:  # the suite judges what was sent, not what came back
                print(f"{call['name']}: {error}", file=sys.stderr)
        if SCENARIO == "http-standard-headers":
            for resource in (await client.list_resources()).resources:
                await client.read_resource(str(resource.uri))
            for prompt in (await client.list_prompts()).prompts:
                await client.get_prompt(prompt.name, {})


asyncio.run(main(sys.argv[1]))
