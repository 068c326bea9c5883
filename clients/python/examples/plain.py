"""Without asyncio: tests of a project with a time limit and one host, then a patch: plain.py DIR COMMAND..."""
import sys

from cordon import CommandFailed, Sandbox, TimedOut, sync

PATCH = """\
*** Begin Patch
*** Add File: RESULT
+all passed
*** End Patch
"""


def main(directory: str, *argv: str) -> int:
    with sync.spawn(sandbox=Sandbox(allow_hosts=["registry.example:443"])) as client:
        try:
            result = client.run(argv, directory, timeout=60, check=True)
        except TimedOut as late:
            print("too slow:", late, file=sys.stderr)
            return 124
        except CommandFailed as failed:
            print(failed, file=sys.stderr)
            return failed.result.exit_code
        print(result.text, end="")
        print("patched:", [file["path"] for file in client.patch(PATCH, directory).files])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
