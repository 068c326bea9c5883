# fish completion for cordon(1); tests/e2e/test_completions_and_man.py holds it against the options
# that the program has.

function __cordon_profiles
    set -l home $CORDON_HOME
    test -n "$home"; or set home ~/.config/cordon
    printf '%s\n' read-only workspace-write danger-full-access
    sed -n 's/^\[permissions\.\([A-Za-z0-9_-]*\)[].].*/\1/p' $home/config.toml 2>/dev/null
end

set -l none 'not __fish_seen_subcommand_from run script explain doctor version help'
complete -c cordon -f
complete -c cordon -n $none -a run -d 'run a command in a sandbox'
complete -c cordon -n $none -a script -d 'play a conversation of exec_command and write_stdin calls'
complete -c cordon -n $none -a explain -d 'show what a command would be allowed'
complete -c cordon -n $none -a doctor -d 'tell which layers this machine can enforce'
complete -c cordon -n $none -a version -d 'tell the version, the launcher and the kernel'
complete -c cordon -n $none -a help -d 'explain a command'
complete -c cordon -s h -l help -d 'explain the options'
complete -c cordon -n $none -l version -d 'tell the version'

set -l policy '__fish_seen_subcommand_from run script explain'
complete -c cordon -n $policy -s p -l profile -x -a '(__cordon_profiles)' -d 'what the command may do'
complete -c cordon -n $policy -l sandbox -x -a 'auto require disabled' -d 'how strong it has to be'
complete -c cordon -n $policy -s C -l directory -x -a '(__fish_complete_directories)' -d 'as if started there'
complete -c cordon -n $policy -s w -l writable -r -F -d 'may also be written'
complete -c cordon -n $policy -s r -l readable -r -F -d 'may be read'
complete -c cordon -n $policy -s d -l deny -r -F -d 'may neither be read nor written'
complete -c cordon -n $policy -s n -l network -x -a 'restricted enabled' -d 'which network it has'
complete -c cordon -n $policy -l config -r -F -d 'config file'
complete -c cordon -n $policy -s e -l env -x -a '(set -xn)' -d 'set or pass a variable'
complete -c cordon -n $policy -l env-inherit -x -a 'core all none' -d 'which variables are passed'
complete -c cordon -n $policy -l env-include -x -d 'pass only variables that match'
complete -c cordon -n $policy -l env-exclude -x -d 'leave out variables that match'

set -l run '__fish_seen_subcommand_from run'
complete -c cordon -n $run -s t -l timeout -x -d 'end the command after this time'
complete -c cordon -n $run -l kill-after -x -d 'time between SIGTERM and SIGKILL'
complete -c cordon -n $run -l max-memory -x -d memory
complete -c cordon -n $run -l max-cpu-time -x -d 'CPU time'
complete -c cordon -n $run -l max-pids -x -d 'processes and threads'
complete -c cordon -n $run -l max-file-size -x -d 'size of a file'
complete -c cordon -n $run -l max-output -x -d 'bytes of output that are kept'
complete -c cordon -n $run -l tty -d 'give it a terminal of its own'
complete -c cordon -n $run -l no-tty -d 'give it pipes'
complete -c cordon -n $run -l stdin -x -a 'pipe null' -d 'what it gets as input'
complete -c cordon -n $run -s j -l json -d 'print one JSON value at the end'
complete -c cordon -n $run -s q -l quiet -d 'say nothing about the sandbox'
complete -c cordon -n $run -a '(__fish_complete_subcommand --fcs-skip=2)'

set -l script '__fish_seen_subcommand_from script'
complete -c cordon -n $script -l fixed-times -d 'print 0 for every measured time'
complete -c cordon -n $script -l max-sessions -x -d 'how many sessions are kept'
complete -c cordon -n $script -F

set -l explain '__fish_seen_subcommand_from explain'
complete -c cordon -n $explain -l path -r -F -d 'answer for one path'
complete -c cordon -n $explain -l for -x -a 'read write' -d 'the access that --path is about'
complete -c cordon -n $explain -l host -x -a '(__fish_print_hostnames)' -d 'answer for one host'
complete -c cordon -n $explain -l values -d 'show the values of variables'
complete -c cordon -n $explain -s j -l json -d 'print one JSON value'

complete -c cordon -n '__fish_seen_subcommand_from doctor version' -s j -l json -d 'print one JSON value'
complete -c cordon -n '__fish_seen_subcommand_from help' -l json -d 'print all commands as one JSON value'
complete -c cordon -n '__fish_seen_subcommand_from help' -x -a 'run script explain doctor version help'
