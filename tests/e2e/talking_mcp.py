"""A client of MCP that speaks its lines itself, so that tests see what is on the wire."""
import json

from harness import finish

INITIALIZE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Mcp:
    """`cordon mcp` over standard input and output. `version` None: not initialized."""

    def __init__(self, place, *options, version="2025-11-25", capabilities=None, **more):
        self.place = place
        self.process = place.start("mcp", *options, text=True, **more)
        self.last = 0
        self.others = []  # what came while an answer was waited for: notifications, requests
        if version:
            self.initialized = self.call("initialize", **INITIALIZE | {
                "protocolVersion": version, "capabilities": capabilities or {}})
            self.notify("notifications/initialized")

    def send(self, *messages):
        for message in messages:
            text = message if isinstance(message, str) else json.dumps(message)
            self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def notify(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, **params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    def answer(self, number):
        """The answer to that request; whatever comes before it is in `others`."""
        while True:
            message = self.read()
            if isinstance(message, dict) and "method" not in message and message.get("id") == number:
                return message
            self.others.append(message)

    def call(self, method, **params):
        """The result; an error is an assertion."""
        answer = self.answer(self.ask(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def fail(self, method, **params):
        """The error."""
        answer = self.answer(self.ask(method, **params))
        assert "error" in answer, answer
        return answer["error"]

    def tool(self, name, _meta=None, **arguments):
        """The structuredContent of a tool that worked; its text is in `text`."""
        more = {"_meta": _meta} if _meta else {}
        result = self.call("tools/call", name=name, arguments=arguments, **more)
        self.text = "".join(part["text"] for part in result["content"])
        assert not result["isError"], self.text
        return result["structuredContent"]

    def tool_fails(self, name, **arguments):
        """What it says that went wrong."""
        result = self.call("tools/call", name=name, arguments=arguments)
        assert result["isError"] and "structuredContent" not in result, result
        return result["content"][0]["text"]

    def wait_for_file(self, name):
        while not (self.place.ws / name).exists():
            self.call("ping")

    def close(self):
        """The end of input; what was still written to both outputs."""
        return finish(self.process, 0)
