"""A model that says what a script says: an HTTP server with as much of the Responses API as Codex
asks for. Used by scripts/try-codex.

    def script(task):                       a generator: yields calls, receives their outputs
        text = yield Call("exec_command", cmd="echo hi")
    with FakeModel(script()) as model:
        ... model.url ...                   the base URL for the client
    model.outputs                           what the client answered to each call, in order
    model.error                             what the script raised, or None
"""
import collections
import http.server
import json
import threading

Call = collections.namedtuple("Call", "name arguments kind namespace", defaults=[None])  # of a tool of MCP


def call(name, **arguments):
    return Call(name, json.dumps(arguments), "function_call")


def freeform(name, text):
    return Call(name, text, "custom_tool_call")


def output_of(item):
    """What a tool gave, as text; an image becomes its type and size."""
    output = item["output"]
    if isinstance(output, str):
        return output
    return "\n".join(part.get("text") or f"<{part['type']} {len(str(part))}>" for part in output)


class FakeModel:
    def __init__(self, script):
        self.script, self.outputs, self.tools = script, [], []
        self.asked, self.error = 0, None
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.reply("text/event-stream", model.answer(json.loads(body)))

            def do_GET(self):
                self.reply("application/json", b'{"models": []}')

            def reply(self, kind, body):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def next_item(self, request):
        """The next thing that the model says: a call, or at the end of the script a message."""
        self.tools = self.tools or request.get("tools", [])
        given = [item for item in request["input"] if item["type"].endswith("_call_output")]
        new = [output_of(item) for item in given[len(self.outputs):]]
        self.outputs += new
        self.asked += 1
        try:
            said = self.script.send(new[-1]) if new else next(self.script)
        except Exception as error:  # the end of the script, or it met what it did not expect
            self.error = None if isinstance(error, StopIteration) else error
            return {"type": "message", "role": "assistant", "id": f"m{self.asked}",
                    "content": [{"type": "output_text", "text": "done"}]}
        text = "arguments" if said.kind == "function_call" else "input"
        space = {"namespace": said.namespace} if said.namespace else {}
        return {"type": said.kind, "id": f"f{self.asked}", "call_id": f"c{self.asked}",
                "name": said.name, text: said.arguments, **space}

    def answer(self, request):
        name = f"r{self.asked}"
        used = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
                "output_tokens_details": None, "total_tokens": 2}
        events = [{"type": "response.created", "response": {"id": name}},
                  {"type": "response.output_item.done", "item": self.next_item(request)},
                  {"type": "response.completed", "response": {"id": name, "usage": used}}]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                       for event in events).encode()
