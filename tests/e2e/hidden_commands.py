"""Scripts that run the program `marker` and try not to look like it.

Every script is a way to run a command (WAYS: where `@` stands for it) with a way to write its name
(NAMES). A pair that does not run the marker after all hides nothing and is left out by the test,
which runs them all; that every way and every name did at least once is checked as well."""
# How the name can be written; BIN is the folder of the program.
NAMES = [
    "marker", "mar'ker'", '"marker"', "m\\arker", "$'\\x6darker'", "${none:-marker}",
    "$(echo marker)", "`echo marker`", "mark$@er", "ma''rker", 'm"ark"er', "mark\\\ner",
    "BIN/marker", "BIN/m?rker", "BIN/mark[e]r", "~/bin/marker", "$(printf '\\155arker')",
    "{marker,x}", "BIN/../bin/marker", "$(echo rekram | rev)", "m\u0430rker",
]

# Where the command is written as such.
WAYS = [
    "@ x", "echo ok; @", "true && @", "false || @", "echo a | @", "echo a;@", "true&&@", "echo a|@",
    "echo a\n@", "echo a\n\n\n@ b", "echo a\t;\t@", "@;", "@ ; echo b", "@\necho b", "(@)",
    "{ @; }", "( echo; @ )", "if true; then @; fi", "if @; then :; fi", "for i in 1; do @; done",
    "while @; do break; done", "until @; do :; done", "case a in a) @;; esac",
    "case a in (a) @ ;& b) ;; esac", "select i in a; do @; break; done <<< 1", "f() { @; }; f",
    "function g { @; }; g", "cd() { @; }; cd", "echo $(@)", 'echo "$(@)"', "echo `@`", 'echo "`@`"',
    "cat <(@)", "echo a > >(@); wait", "@ > /dev/null", "@ < /dev/null", "@ 2>&1", "> /dev/null @",
    "2>/dev/null @", "@ &> /dev/null", "A=1 @", "A=1 B='x y' @ c", "A=$(@)", "! @", "time @",
    "time -p @", "coproc @; wait", "@ & wait", "[[ -n $(@) ]] || true", '[ -n "$(@)" ] || true',
    "echo $(( $(@; echo 1) + 1 ))", "(( $(@; echo 1) ))", "echo ${x:-$(@)}", "echo ${x:=`@`}",
    "a=(1 $(@)); echo", "a[$(@; echo 0)]=1", "echo {a,$(@)}", "echo ok # comment\n@",
    "echo ok \\\n; @", "# @\n@", ": '\n'; @", ': "\n"\n@', "echo ok #\r\n@",
    "echo ok; @ #\recho harmless", "echo a ;\r\ntrue\n@", "@ \r", "echo $'a\\'b'; @",
    'echo "a\\"b"; @', "echo 'a'\\''b'; @", "cat <<E\nx\nE\n@", "cat <<'E'\n'\nE\n@",
    "cat <<-E\n\tx\n\tE\n@", "cat <<E\n$(@)\nE", "cat <<E\n`@`\nE", "bash <<E\n@\nE",
    "cat <<'E' | sh\nmarker\nE", "sh <<'E'\nmarker\nE", "eval @", "eval -- @", "eval echo \\; @", "env @",
    "env A=1 @", "env -u B @", "/usr/bin/env @", "command @", "exec @", "exec -a b @",
    "builtin command @", "command command @", "nohup @", "nice @", "nice -n 1 @", "timeout 9 @",
    "timeout -k 1 9 @", "setsid -w @", "stdbuf -o0 @", "ionice -c 3 @", "flock . @",
    "env nice nohup @", "xargs @ < /dev/null", "echo x | xargs @", "echo x | xargs -n1 @",
    "echo x | xargs -I% @ %", "echo x | xargs env @", "find . -maxdepth 0 -exec @ {} \\;",
    "find . -maxdepth 0 -exec @ {} +", "find . -maxdepth 0 -exec @ ';'",
    "find . -maxdepth 0 -execdir env @ ';'", "setarch -R @",
    "find . -maxdepth 0 -name . -exec true ';' -exec @ ';'", "true | @", "echo a | cat | @ | cat",
    "jobs -x @", "set -- @; $1", 'set -- @; "$*"', "x=@; $x", "x=@ y=x; ${!y}", "x=(@); ${x[0]}",
    "readonly x=@; $x", "export x=@; $x", "export A=1; @", "declare x=@; $x", "set -e; @",
    "set -k; @ a=b", "\n\n@\n", " \t@\t ", "echo '@' '\n'; @", "true;\n@", "true |\n@",
    "true &&\n\n@", "{ { (@) } }", "\xe9=1 2>/dev/null; @", "echo \u201c; @", "echo \xa0; @",
    "echo \uff1b; @", "echo '\u202e'; @", "set -o history -o histexpand\nhistory -s @\n!!",
    "shopt -s expand_aliases\nalias x=@\nx", "hash -p BIN/marker ls; ls",
    "printf -v x %s marker; $x", "read x <<< marker; $x", "IFS=:; x=marker:a; $x",
    "mapfile -t x <<< marker; $x", "PS4='$(marker)'; set -x; :",
    "export PATH=BIN/alike:$PATH; innocent", "PATH=BIN/alike:$PATH; innocent", "cd BIN; ./marker",
    "alias x=marker; eval x; shopt -s expand_aliases; eval x", "compgen -C marker",
    "test -v 'x[$(marker)]'", "[ -v 'x[$(marker)]' ]", "[[ -v x[$(marker)] ]]",
    "printf -v 'x[$(marker)]' a", "read 'x[$(marker)]' <<< a", "declare 'x[$(marker)]=1'",
    "x=(1); unset 'x[$(marker)]'", "let 'x[$(marker)]=1'", "mapfile -C marker -c 1 x <<< y",
    "true & wait -n -p 'x[$(marker)]'", "typeset -i x='y[$(marker)]'", "trap marker EXIT",
    "trap 'marker' DEBUG; true", 'bash -c \'trap "marker" EXIT\'', "source /dev/stdin <<< marker",
    ". <(echo marker)", "echo marker > x.sh; . ./x.sh", "bash <(echo marker)",
    "echo marker > y.sh && bash y.sh", 'eval "$(echo marker)"', 'eval "eval \'eval marker\'"',
    "export -f marker 2>/dev/null; marker", "exec 3< <(marker)", "exec 3<<< $(marker)",
    "enable -n echo; marker",
]

# Where the command is a text inside quotes: of names without quotes.
TEXTS = [
    "eval 'Q'", 'eval "Q"', "trap 'Q' EXIT", "sh -c 'Q'", "bash -c 'Q'", "bash -lc 'echo; Q'",
    "bash -ec 'Q' a b", "zsh -c 'Q'", "dash -c 'Q'", "env -S 'Q'", "env -S'Q'", "env --split-string='Q'", "env bash -c 'Q'",
    'bash -c "bash -c \'Q\'"', "echo 'Q' | sh", "echo 'Q' | bash -s", "printf '%s\\n' 'Q' | sh -",
    "bash <<< 'Q'", "xargs sh -c 'Q' < /dev/null", "echo Q | xargs -I% sh -c %",
    "echo 'Q' | xargs -I% sh -c 'echo; %'", "echo 'Q' | xargs -d '\\n' sh -c",
    "find . -maxdepth 0 -exec sh -c 'Q' ';'", "find . -maxdepth 0 -exec sh -c 'Q' {} +",
    "script -qec 'Q' /dev/null", "flock . -c 'Q'", "command eval 'Q'", "builtin eval 'Q'",
    "bash -O extglob -c 'Q'", 'sh -c \'eval "Q"\'', "timeout 9 sh -c 'Q'", "bash -c -- 'Q'",
    "bash -c -e 'Q'", "bash --norc -c 'Q'", "nohup sh -c 'Q; true'",
    "shopt -s expand_aliases\nalias z='Q'\nz", "echo . -maxdepth 0 -exec 'Q' ';' | xargs find",
    'sh -c \'alias z="Q"\nz\'', "bash -o posix -c 'Q'",
]

# Where the name comes from elsewhere.
FED = [
    "echo marker | xargs --replace env {}", "echo marker | xargs -i nice {}",
    "echo marker | xargs -I% -t nice %", "echo marker | xargs -I% env %",
    "echo marker | xargs -0I% sh -c %", "echo marker | xargs -I% -tn1 sh -c %",
    "echo marker | xargs env", "echo marker | xargs nice", "echo 9 marker | xargs timeout",
    "echo -c marker | xargs sh", "echo marker | xargs -t -n1 env A=1",
    "echo marker | xargs -I% -a /dev/stdin env %", "echo env marker | xargs nohup",
    'echo marker | xargs sh -c \'"$0"\'', "echo marker | xargs setsid -w",
    "echo xargs marker | xargs env", "find BIN -name marker -exec {} ';'",
    "find BIN -name marker -exec env {} ';'", "find BIN -name marker | xargs env",
    "find BIN -name marker -exec sh {} ';'", "find BIN -name marker -exec sh -c {} ';'",
    "ls BIN/marker | xargs nice -n1", "echo marker | sh", "echo marker | bash -s",
    "echo marker | zsh", "echo marker | sh -", "echo marker | bash /dev/stdin",
    "echo marker | bash -x /dev/fd/0", "echo marker | sh /tmp/../dev/stdin", "echo marker | env sh",
    "echo marker | command sh", "echo marker | exec sh", "echo marker | timeout 9 sh",
    "echo marker | xargs -I% find . -maxdepth 0 -exec % ';'", "echo marker | source /dev/stdin",
]

# Words of zsh, and what sh does otherwise.
OTHER = {
    "zsh": [
        "noglob @", "nocorrect @", "repeat 1 @", "=marker", "command @", "foreach i (1); @; end",
        "alias x=marker; eval x", "alias -g X=marker\neval X", "${:-marker}", "x=marker; $x",
        "for i (1) @", "() { @ }", "function { @ }", "{ @ } always { : }", "@ &!", "echo =(@)",
        "echo *(e:marker:)", "functions[f]=marker; f", "eval marker", "[[ -n $(@) ]] || true",
        "autoload f; f() { marker }; f", "print -v x marker; $x", "<<< $(@)",
        "echo $(( x[$(marker)] ))", "emulate sh -c marker", "chpwd() { marker }; cd /",
        "precmd=(); TRAPEXIT() { marker }", "echo a |& @", "hash f=BIN/marker; f",
    ],
    "sh": [
        "alias x=marker\nx", "alias x='marker y'; eval x", "x=marker; $x", "eval marker",
        "trap marker EXIT", "@ & wait", "(@)", "echo `@`", "{ @; }", "f() { @; }; f",
        "command -p env @",
    ],
}


def generate(bin_folder):
    """[(shell, way, name, script)], some more than a thousand."""
    pairs = [("bash", way, "marker") for way in WAYS + FED]
    # every other name meets a quarter of the ways
    for number, name in enumerate(NAMES[1:]):
        pairs += [("bash", way, name) for way in WAYS[number % 4 :: 4] if "@" in way]
    quotable = [name for name in NAMES if not set(name) & set("'\"\n`$")]
    pairs += [("bash", way.replace("Q", "@"), name) for way in TEXTS for name in quotable]
    pairs += [(shell, way, "marker") for shell, ways in OTHER.items() for way in ways]
    return [(shell, way, name, way.replace("@", name).replace("BIN", bin_folder))
            for shell, way, name in dict.fromkeys(pairs)]
