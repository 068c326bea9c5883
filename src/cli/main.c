/* `cordon`: which program is this, and which of its commands is asked for.
 *
 *     argv[0]                   what it is
 *     cordon-init               the launcher, in place of a missing cordon-linux-sandbox
 *     codex-linux-sandbox,      the helper with Codex's flags (helper.h)
 *     cordon-linux-sandbox
 *     apply_patch, applypatch   a patch in the argument, as models call it
 *     claude-shell              what Claude Code starts for a shell (integrate_hook.h)
 *     cordon-patch              the inner half of `cordon patch` (patch/patch.h)
 *     anything else             a command line for people
 *
 * One table entry per command, one file per command. Nothing is initialised here that not every
 * command needs: `cordon run` is measured in microseconds. In particular the locale stays "C". */
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/integrate_hook.h"
#include "cli/patch.h"
#include "patch/patch.h"
#include "sandbox/launcher/launcher.h"
#include "sandbox/launcher/plan_format.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

const struct command *const commands[] = {
    &command_run,
    &command_layers,
    &command_changes,
    &command_diff,
    &command_accept,
    &command_drop,
    &command_undo,
    &command_script,
    &command_patch,
    &command_explain,
    &command_learn,
    &command_doctor,
    &command_mcp,
    &command_integrate,
    &command_serve,
    &command_connect,
    &command_log,
    &command_rules,
    &command_config,
    &command_presets,
    &command_version,
    &command_help,
    NULL,
};

/* Three descriptors that a caller closed would otherwise be given to the next things that are
 * opened, and output would go there. */
static void open_missing_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            /* allow open: it takes the place of stdin, stdout or stderr, and is to be inherited */
            (void)!open("/dev/null", O_RDWR);
}

int main(int argc, char **argv)
{
    const char *name = argc > 0 ? path_name(argv[0]) : "";
    char *as_version[] = {(char *)"version", NULL};
    const struct command *command;

    if ((argc == 2 || argc == 3) && str_eq(argv[0], PLAN_LAUNCHER_NAME))
        return launcher_main(argv[1], argv[2]);
    open_missing_stdio();
    if (str_eq(name, "codex-linux-sandbox") || str_eq(name, "cordon-linux-sandbox"))
        return helper_main(argv + 1);
    if (str_eq(name, "apply_patch") || str_eq(name, "applypatch"))
        return patch_apply_main(argv + 1);
    if (str_eq(name, PATCH_HELPER_NAME))
        return patch_helper_main(argv + 1);
    if (str_eq(name, CLAUDE_SHELL_NAME))
        return claude_shell_main(argv);
    if (argc < 2) {
        help_print();
        return EXIT_FAILED;
    }
    argv++;
    if (str_eq(*argv, "--help") || str_eq(*argv, "-h"))
        return help_print();
    if (str_eq(*argv, "--version") || str_eq(*argv, "-V"))
        return command_version.run(as_version);
    /* the program's name is where the command's would be */
    if (str_eq(*argv, "--connect") || str_starts(*argv, "--connect=") || str_eq(*argv, "publish"))
        return command_connect.run(argv - 1);
    if (**argv == '-') {
        console_say("options come behind a command: cordon COMMAND %s (\"cordon help\" lists the "
                    "commands; to run a program: cordon run -- PROGRAM)",
                    *argv);
        return EXIT_FAILED;
    }
    command = help_find_command(*argv);
    return command ? command->run(argv) : EXIT_FAILED;
}
