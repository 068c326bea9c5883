"""A model that says what a script says, as fake_model.py, with as much of the Messages API as Claude Code asks for.
Used by scripts/try-mcp-clients.

    with FakeMessages(script()) as model:
        ... model.url ...                   ANTHROPIC_BASE_URL

Claude Code asks for more than the turn (titles, a check of the quota, names of topics): what has no tools is answered
with a word, and is not the script's."""
import json

from fake_model import FakeModel


def results_of(request):
    """What the tools gave so far, as text, in order."""
    for message in request["messages"]:
        if message["role"] == "user" and isinstance(message["content"], list):
            for part in message["content"]:
                if part["type"] == "tool_result":
                    content = part["content"]
                    yield content if isinstance(content, str) else "\n".join(
                        piece.get("text") or f"<{piece['type']}>" for piece in content)


class FakeMessages(FakeModel):
    def __init__(self, script):
        super().__init__(script)
        self.url = self.url.removesuffix("/v1")
        self.requests = []

    def next_block(self, request):
        self.requests.append(request)
        if not request.get("tools"):
            return {"type": "text", "text": "fine"}
        self.tools = request["tools"]
        given = list(results_of(request))
        new = given[len(self.outputs):]
        self.outputs += new
        self.asked += 1
        try:
            said = self.script.send(new[-1]) if self.outputs and new else next(self.script)
        except Exception as error:  # the end of the script, or it met what it did not expect
            self.error = None if isinstance(error, StopIteration) else error
            return {"type": "text", "text": "done"}
        return {"type": "tool_use", "id": f"toolu_{self.asked}", "name": said.name,
                "input": json.loads(said.arguments)}

    def answer(self, request):
        block = self.next_block(request)
        is_tool = block["type"] == "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if is_tool else \
            {"type": "text_delta", "text": block["text"]}
        begun = {**block, **({"input": {}} if is_tool else {"text": ""})}
        stop = "tool_use" if is_tool else "end_turn"
        message = {"id": f"msg_{self.asked}", "type": "message", "role": "assistant", "model": request["model"],
                   "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not request.get("stream"):
            return json.dumps({**message, "content": [block], "stop_reason": stop}).encode()
        events = [{"type": "message_start", "message": message},
                  {"type": "content_block_start", "index": 0, "content_block": begun},
                  {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                   "usage": {"output_tokens": 1}},
                  {"type": "message_stop"}]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
