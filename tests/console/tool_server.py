"""An MCP server with two tools. What `look` says about itself is the first argument."""

import json
import sys

TOOLS = [
    {"name": "look", "description": sys.argv[1], "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}}},
    {"name": "sweep", "description": "Sweeps the shop", "inputSchema": {"type": "object"}},
]

for line in sys.stdin:
    ask = json.loads(line)
    if "id" in ask:
        result = {"tools": TOOLS} if ask["method"] == "tools/list" else {"content": []}
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": result}), flush=True)
