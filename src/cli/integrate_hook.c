/* See integrate_hook.h. All of this runs outside of the sandbox, with what a model wrote in its hands; it never looks into
 * that further than to see whose it is, and what it cannot tell goes into the sandbox, or is refused.
 *
 * Claude Code starts the program that CLAUDE_CODE_SHELL_PREFIX names with one argument, a line for a shell, for three
 * things: the Bash tool, hooks, and MCP servers. The last two are the user's own programs, and say so by a variable that
 * Claude Code (2.1) sets for each: AI_AGENT ends in "_harness". Everything else is the model's. The root of its
 * workspace is the directory of Claude Code itself, wherever the model has gone since; the file that Claude Code has the
 * shell write the last directory to is made here, and is all that is opened beside.
 *
 * Cursor takes a yes or a no for each command, and gets a no that says what to do. Hooks that put another command in the
 * place of the model's are not used where there are some (Claude Code, Gemini CLI): their permission rules are then held
 * against the other command, so that what the user denies is denied no more. */
#include "cli/integrate_hook.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/console.h"
#include "setup/shell_text.h"
#include "workspace/tmp_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Claude Code --- */

enum { CMDLINE_MAX = 4 << 20 };

/* A hook or an MCP server of the user's. What has the marks of the Bash tool is none, whatever the variable says. */
static bool is_own_program(const char *text)
{
    const char *agent = getenv("AI_AGENT");

    return agent && str_starts(agent, "claude-code") && str_ends(agent, "_harness") &&
           !strstr(text, "pwd -P >|");
}

/* The shell that Claude Code wrote the text for: the one that it was told, or the user's, if it is of the two that it
 * knows. */
static const char *claude_shell(void)
{
    const char *chosen = getenv("CLAUDE_CODE_SHELL");
    const char *shell = chosen && *chosen ? chosen : getenv("SHELL");

    return shell && str_eq(path_name(shell), "zsh") ? shell : "bash";
}

/* A shell that Claude Code started with our name in its text, and that did not make way for us (one that has a trap
 * does not). It is where the model has gone. */
static bool is_shell_between(pid_t pid)
{
    AUTO_FREE char *path = alloc_strf("/proc/%d/cmdline", (int)pid);
    AUTO(buf_done) struct buf words = {.max = CMDLINE_MAX};
    const char *at, *end, *name;
    struct err ignored; /* a shell's can be read */

    if (fd_read_file(path, CMDLINE_MAX, &words, &ignored) || !words.len)
        return false;
    at = words.data;
    end = at + words.len;
    name = path_name(at);
    if (!str_eq(name, "bash") && !str_eq(name, "zsh") && !str_eq(name, "sh"))
        return false;
    at += strlen(at) + 1;
    if (at >= end || !str_eq(at, "-c"))
        return false;
    while (at < end && *at == '-')
        at += strlen(at) + 1;
    return at < end && strstr(at, "/" CLAUDE_SHELL_NAME);
}

/* The directory of Claude Code; caller frees, NULL with errno. */
static char *claude_directory(void)
{
    AUTO_FREE char *link = NULL;
    pid_t pid = getppid();

    while (pid > 0 && is_shell_between(pid))
        pid = proc_parent(pid);
    link = alloc_strf("/proc/%d/cwd", (int)pid);
    return realpath(link, NULL);
}

/* Makes the file that the directory is to be written to; NULL when there is none or it cannot be made: then Claude Code
 * stays where it is. Caller frees. */
static char *make_cwd_file(const char *text)
{
    const char *tmp = getenv("TMPDIR");
    AUTO_FREE char *clean = path_clean("/", tmp && *tmp == '/' ? tmp : "/tmp");
    AUTO_FREE char *file = claude_cwd_file(text, clean);
    int fd = -1;

    if (!file)
        file = claude_cwd_file(text, "/tmp");
    if (file)
        fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    close(fd);
    return TAKE_PTR(file);
}

/* What the file was laid over in the /tmp of the workspace: one for every command, otherwise. */
static void remove_shadow(const char *root, const char *file)
{
    struct tmp_store store;

    tmp_store_open(root, false, &store);
    if (store.folder && str_starts(file, "/tmp/")) {
        AUTO_FREE char *shadow = alloc_strf("%s%s", store.folder, file);

        unlink(shadow);
    }
    tmp_store_close(&store);
}

static int claude_run(const char *text)
{
    AUTO(strv_done) struct strv words = {0};
    AUTO_FREE char *root = claude_directory();
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *file = NULL;
    AUTO(buf_done) struct buf whole = {.max = SIZE_MAX / 2};
    int status;

    if (!root || !cwd)
        return console_failf("which directory Claude Code is in: %s (with a sandbox of its own, "
                             "\"sandbox\": {\"enabled\": true} in its settings, it cannot be seen: "
                             "switch that off)",
                             strerror(errno));
    if (str_eq(root, "/"))
        return console_failf("Claude Code runs in /, which is no workspace: begin it in a project");
    if (!str_eq(root, cwd)) {
        buf_append_str(&whole, "cd -- ");
        shell_quote(cwd, &whole);
        buf_append_str(&whole, " || exit\n"); /* not "&&": the text goes on behind what fails */
    }
    buf_append_str(&whole, text);
    file = make_cwd_file(text);
    strv_push(&words, "run");
    strv_push(&words, "--directory");
    strv_push(&words, root);
    if (file) {
        strv_push(&words, "--writable");
        strv_push(&words, file);
    }
    strv_push(&words, "--no-tty");
    strv_push(&words, "--");
    strv_push(&words, claude_shell());
    shell_text_words(whole.data, &words);
    status = command_run.run((char **)strv_view(&words));
    if (file) {
        struct stat st;

        if (lstat(file, &st) == 0 && st.st_size > PATH_MAX)
            (void)!truncate(file, 0); /* no path: Claude Code would read all of it */
        remove_shadow(root, file);
    }
    return status;
}

int claude_shell_main(char **argv)
{
    const char *text = argv[0] ? argv[1] : NULL;

    if (!text || argv[2])
        return console_failf(
            "this is what Claude Code starts in the place of a shell, with one line for it; "
            "\"cordon integrate claude --undo\" takes it away");
    if (!is_own_program(text))
        return claude_run(text);
    execl("/bin/sh", "sh", "-c", text, (char *)NULL);
    return console_failf("/bin/sh: %s", strerror(errno));
}

/* --- Cursor --- */

enum { INPUT_MAX = 16 << 20 };

static int answer_cursor(const json_t *root, json_t **ret, struct err *err)
{
    static const char *const words =
        "Commands run in a sandbox here: use the tool exec_command of the MCP server \"cordon\" in "
        "place of the terminal.";

    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "the question is no object");
    *ret = json_pack(
        "{s:s, s:s, s:s}", "permission", "deny", "user_message",
        "Cordon: Cursor's own terminal is switched off; its agent uses the MCP server \"cordon\" "
        "(\"cordon integrate cursor --undo\" switches it on again).",
        "agent_message", words);
    return 0;
}

int integrate_hook(const char *client)
{
    AUTO(buf_done) struct buf text = {.max = INPUT_MAX};
    AUTO_JSON json_t *root = NULL, *answer = NULL;
    AUTO_FREE char *out = NULL;
    struct err err;

    if (!str_eq(client, "cursor")) {
        console_say("there is no hook for \"%s\"", client);
        return EXIT_CANNOT;
    }
    if (buf_read_fd(&text, STDIN_FILENO, &err) == 0)
        root = json_parse(text.data ? text.data : "", text.len, &err);
    if (!root || answer_cursor(root, &answer, &err)) {
        console_say("the command was not run: %s", err.msg);
        return EXIT_CANNOT; /* 2 is a no */
    }
    out = json_dumps(answer, JSON_COMPACT);
    return out && puts(out) != EOF && fflush(stdout) == 0 ? EXIT_OK : EXIT_CANNOT;
}
