"""Runs a command that may write nothing, and asks whenever it wants to: approvals.py DIR COMMAND...

What the sandbox refuses waits for the answer, and a yes lets the command carry on. No answer is a no."""
import asyncio
import sys
import threading

import cordon

one_by_one = threading.Lock()


def ask(question: cordon.Question) -> bool:
    """A plain function may wait for a person: it is called in a thread of its own, and so perhaps while another waits."""
    with one_by_one:
        print(f"{question['reason']}\na yes covers: {question['covers']} [y/N]", flush=True)
        return sys.stdin.readline().strip() == "y"


async def main(directory: str, *argv: str) -> int:
    async with cordon.spawn(sandbox="read-only", on_question=ask) as client:
        result = await client.run(argv, directory)
    print(result.text + result.stderr.decode(errors="replace"), end="")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
