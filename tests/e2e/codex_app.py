"""One turn of `codex app-server`, whose client is asked before something needs more rights: unlike
`codex exec` it knows approvals. Used by scripts/try-codex and scripts/try-mcp-clients.

    turn([codex, "app-server"], {"cwd": ..., "sandbox": ..., "approvalPolicy": ...}, cwd=, env=)
"""
import json
import subprocess


def answer_to(message):
    """No, when the reason says so, and yes otherwise; a server of MCP asks by a form (elicitation)."""
    if message["method"] == "mcpServer/elicitation/request":
        return {"action": "accept", "content": {"decision": "approved"}, "_meta": None}
    return {"decision": "decline" if "say no" in str(message["params"].get("reason")) else "accept"}


class App:
    def __init__(self, process):
        self.process, self.next_id = process, 1

    def send(self, **message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self, is_wanted):
        """The first message that is wanted. Questions before it are answered."""
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send(id=message["id"], result=answer_to(message))
            elif is_wanted(message):
                return message
        raise EOFError("codex app-server ended")

    def call(self, method, **params):
        number = self.next_id
        self.next_id += 1
        self.send(id=number, method=method, params=params)
        answer = self.read(lambda message: message.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]


def turn(argv, thread, **kwargs):
    """To its end; what went wrong raises."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, **kwargs) as process:
        try:
            app = App(process)
            app.call("initialize", clientInfo={"name": "try-codex", "title": "", "version": "1"})
            app.send(method="initialized")
            started = app.call("thread/start", **thread)
            app.call("turn/start", threadId=started["thread"]["id"],
                     input=[{"type": "text", "text": "go"}])
            app.read(lambda message: message.get("method") == "turn/completed")
            process.stdin.close()
            process.wait(60)
        finally:
            process.kill()
