# bash completion for cordon(1); tests/e2e/test_completions_and_man.py holds it against the options
# that the program has.

_cordon_profiles() {
    local config=${CORDON_HOME:-$HOME/.config/cordon}/config.toml
    echo read-only workspace-write danger-full-access
    sed -n 's/^\[permissions\.\([A-Za-z0-9_-]*\)[].].*/\1/p' "$config" 2>/dev/null
}

# Completes the value of option $1 that begins with $2; false when the option takes none.
_cordon_value() {
    case $1 in
    -p | --profile) COMPREPLY=($(compgen -W "$(_cordon_profiles)" -- "$2")) ;;
    --sandbox)
        if [[ ${COMP_WORDS[1]} == rules ]]; then
            COMPREPLY=($(compgen -W "keep bypass" -- "$2"))
        else
            COMPREPLY=($(compgen -W "auto require disabled" -- "$2"))
        fi
        ;;
    --protocol) COMPREPLY=($(compgen -W "http https socks5_tcp socks5_udp" -- "$2")) ;;
    --decision) COMPREPLY=($(compgen -W "allow prompt forbidden" -- "$2")) ;;
    -n | --network) COMPREPLY=($(compgen -W "restricted enabled" -- "$2")) ;;
    --env-inherit) COMPREPLY=($(compgen -W "core all none" -- "$2")) ;;
    --stdin) COMPREPLY=($(compgen -W "pipe null" -- "$2")) ;;
    -a | --ask-for-approval)
        COMPREPLY=($(compgen -W "untrusted on-request granular never on-failure" -- "$2"))
        ;;
    --approval-hook) COMPREPLY=($(compgen -c -- "$2")) ;;
    --for) COMPREPLY=($(compgen -W "read write" -- "$2")) ;;
    -C | --directory)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -d -- "$2"))
        ;;
    -w | --writable | -r | --readable | -d | --deny | --path | --config | --rules)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$2"))
        ;;
    -e | --env) COMPREPLY=($(compgen -v -- "$2")) ;;
    --host) COMPREPLY=($(compgen -A hostname -- "$2")) ;;
    --ws-auth) COMPREPLY=($(compgen -W "capability-token signed-bearer-token anybody" -- "$2")) ;;
    --log-level) COMPREPLY=($(compgen -W "error warn info debug" -- "$2")) ;;
    --log-format) COMPREPLY=($(compgen -W "text json" -- "$2")) ;;
    --ws-token-file | --ws-shared-secret-file | --auth-token-file)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$2"))
        ;;
    --signal) COMPREPLY=($(compgen -W "TERM INT KILL" -- "$2")) ;;
    --connect) COMPREPLY=($(compgen -W "ws:// unix:" -- "$2")) ;;
    --from | --detach-key | --grace) COMPREPLY=() ;;
    --listen | --ws-token-sha256 | --ws-issuer | --ws-audience | --ws-max-clock-skew-seconds | \
        --max-connections | --max-processes | --session-lifetime | --drain-timeout | \
        --spool-quota | --concurrent-requests) COMPREPLY=() ;;
    --env-include | --env-exclude | --max-sessions | -t | --timeout | --kill-after | --max-memory | \
        --max-cpu-time | --max-pids | --max-file-size | --max-output | \
        --approval-timeout | --since | --session | --justification | -n | --lines) COMPREPLY=() ;;
    *) return 1 ;;
    esac
    return 0
}

# Where the command to be run begins in COMP_WORDS; nothing when it is not begun yet.
_cordon_command_at() {
    local i COMPREPLY
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) echo $((i + 1)) && return ;;
        --*=*) ;;
        -*) # a value of its own, or "--name", "=", "value" as bash splits it
            if [[ ${COMP_WORDS[i + 1]} == "=" ]]; then
                ((i += 2))
            elif _cordon_value "${COMP_WORDS[i]}" ""; then
                ((i++))
            fi
            ;;
        *) echo "$i" && return ;;
        esac
    done
}

_cordon() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at
    local permissions="--profile --sandbox --directory --writable --readable --deny --network --config"
    local policy="$permissions --env --env-inherit --env-include --env-exclude"
    local approval="--ask-for-approval --approval-hook --approval-timeout"
    local limits="--timeout --kill-after --max-memory --max-cpu-time --max-pids --max-file-size
        --max-output"
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run script patch explain doctor serve connect log rules version help --help --version" -- "$cur"))
        return
    fi
    if [[ ${COMP_WORDS[1]} == run ]]; then
        at=$(_cordon_command_at)
        if [[ -n $at ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset "$at"
            elif ((at == COMP_CWORD)); then
                COMPREPLY=($(compgen -c -- "$cur"))
            else
                compopt -o filenames 2>/dev/null
                COMPREPLY=($(compgen -f -- "$cur"))
            fi
            return
        fi
    fi
    if [[ $prev == "=" ]]; then # "--name=value" comes as three words
        _cordon_value "${COMP_WORDS[COMP_CWORD - 2]}" "$cur" && return
    elif [[ $cur == "=" ]]; then
        _cordon_value "$prev" "" && return
    else
        _cordon_value "$prev" "$cur" && return
    fi
    case ${COMP_WORDS[1]} in
    run)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "$policy $limits $approval --tty --no-tty --stdin --json --quiet
                --no-audit --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -c -- "$cur"))
        fi
        ;;
    script)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--fixed-times --max-sessions $policy --help" -- "$cur"))
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        ;;
    patch)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--check --diff --recover --json $permissions --help" -- "$cur"))
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        ;;
    explain)
        COMPREPLY=($(compgen -W "--path --for --host --values --json --ask-for-approval $policy
            --help" -- "$cur"))
        ;;
    serve)
        COMPREPLY=($(compgen -W "--listen --config --ws-auth --ws-token-file --ws-token-sha256
            --ws-shared-secret-file --ws-issuer --ws-audience --ws-max-clock-skew-seconds
            --max-connections --max-processes --session-lifetime --drain-timeout
            --approval-hook --approval-terminal --approval-timeout --spool-quota --concurrent-requests
            --log-level --log-format --help" -- "$cur"))
        ;;
    connect)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--connect --auth-token-file --directory --profile --network
                --env --tty --stdin --detach --json --read-only --from --detach-key --follow
                --signal --grace --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "run ps attach logs kill cp" -- "$cur"))
        fi
        ;;
    log) COMPREPLY=($(compgen -W "verify --since --session --denied --lines --json --help" -- "$cur")) ;;
    rules)
        if ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then
            COMPREPLY=($(compgen -W "check add test" -- "$cur"))
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--rules --host --protocol --decision --sandbox --justification
                --json --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -c -- "$cur"))
        fi
        ;;
    doctor | version) COMPREPLY=($(compgen -W "--json --help" -- "$cur")) ;;
    help) COMPREPLY=($(compgen -W "run script patch explain doctor serve connect log rules version help --json --help" -- "$cur")) ;;
    esac
}

complete -F _cordon cordon
