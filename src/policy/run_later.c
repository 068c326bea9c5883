/* See run_later.h. A pattern without a slash is about the last name, one that ends with a slash about all that is below such
 * names, at any depth, and any other about the last names. Folders begin with a point. Capitals are small letters, too:
 * some programs take both, and so do some file systems. */
#include "policy/run_later.h"

#include "base/path.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *pattern, *by;
} known[] = {
    {"Makefile", "make"},
    {"GNUmakefile", "make"},
    {"*.mk", "make"},
    {"Makefile.am", "make"},
    {"Makefile.in*", "make"},
    {"Makefile.common", "make"},
    {"Makefile.rules", "make"},
    {"*.mak", "make"},
    {"Kbuild", "make"},
    {"SConstruct", "scons"},
    {"SConscript", "scons"},
    {"CMakeLists.txt", "cmake"},
    {"*.cmake", "cmake"},
    {"CMakePresets.json", "cmake"},
    {"CMakeUserPresets.json", "cmake"},
    {"meson.build", "meson"},
    {"configure", "builds"},
    {"configure.ac", "builds"},
    {"configure.in", "builds"},
    {"*.m4", "builds"},
    {"xmake.lua", "builds"},
    {"premake*.lua", "builds"},
    {"BUILD.gn", "builds"},
    {"*.gni", "builds"},
    {".gn", "builds"},
    {"Jamroot", "builds"},
    {"Jamfile", "builds"},
    {"Tupfile", "builds"},
    {"BUCK", "builds"},
    {".buckconfig", "builds"},
    {"pants.toml", "builds"},
    {"build.zig", "builds"},
    {"Makefile.PL", "builds"},
    {"Build.PL", "builds"},
    {"Earthfile", "builds"},
    {"Tiltfile", "builds"},
    {"skaffold.yaml", "builds"},
    {"justfile", "just"},
    {".justfile", "just"},
    {"Taskfile.yml", "task"},
    {"Taskfile.yaml", "task"},
    {"BUILD.bazel", "bazel"},
    {"WORKSPACE", "bazel"},
    {"WORKSPACE.bazel", "bazel"},
    {"BUILD", "bazel"},
    {"*.bzl", "bazel"},
    {"MODULE.bazel", "bazel"},
    {".bazelrc", "bazel"},
    {".bazelversion", "bazel"},
    {"*.nix", "nix"},
    {"flake.lock", "nix"},
    {"package.json", "npm"},
    {".npmrc", "npm"},
    {"package-lock.json", "npm"},
    {"npm-shrinkwrap.json", "npm"},
    {"binding.gyp", "npm"},
    {"*.gypi", "npm"},
    {".yarnrc", "yarn"},
    {".yarnrc.yml", "yarn"},
    {".yarn/", "yarn"},
    {"yarn.lock", "yarn"},
    {".pnp.*", "yarn"},
    {"bunfig.toml", "bun"},
    {"bun.lock", "bun"},
    {"bun.lockb", "bun"},
    {".pnpmfile.cjs", "pnpm"},
    {"pnpmfile.*", "pnpm"},
    {"pnpm-lock.yaml", "pnpm"},
    {"pnpm-workspace.yaml", "pnpm"},
    {"*.config.js", "node's tools"},
    {"*.config.cjs", "node's tools"},
    {"*.config.mjs", "node's tools"},
    {"*.config.ts", "node's tools"},
    {"*.config.mts", "node's tools"},
    {"*.config.cts", "node's tools"},
    {"gulpfile.*", "node's tools"},
    {".eslintrc*", "node's tools"},
    {"Gruntfile.*", "node's tools"},
    {".babelrc*", "node's tools"},
    {".prettierrc*", "node's tools"},
    {".stylelintrc*", "node's tools"},
    {".mocharc*", "node's tools"},
    {".postcssrc*", "node's tools"},
    {".commitlintrc*", "node's tools"},
    {".releaserc*", "node's tools"},
    {".nycrc*", "node's tools"},
    {".swcrc", "node's tools"},
    {"karma.conf.*", "node's tools"},
    {"wdio.conf.*", "node's tools"},
    {"webpack.*.js", "node's tools"},
    {"nx.json", "node's tools"},
    {"turbo.json", "node's tools"},
    {"lerna.json", "node's tools"},
    {"angular.json", "node's tools"},
    {"project.json", "node's tools"},
    {"setup.py", "pip"},
    {"setup.cfg", "pip"},
    {"pyproject.toml", "pip"},
    {"requirements*.txt", "pip"},
    {"Pipfile", "pip"},
    {"Pipfile.lock", "pip"},
    {"poetry.lock", "pip"},
    {"uv.lock", "pip"},
    {"conftest.py", "pytest"},
    {"pytest.ini", "pytest"},
    {".pytest.ini", "pytest"},
    {"pytest.toml", "pytest"},
    {".pytest.toml", "pytest"},
    {"__pycache__/conftest.*", "pytest"},
    {"noxfile.py", "nox"},
    {"tox.ini", "tox"},
    {"*.pth", "python"},
    {"sitecustomize.*", "python"},
    {"usercustomize.*", "python"},
    {"__pycache__/sitecustomize.*", "python"},
    {"__pycache__/usercustomize.*", "python"},
    {"sitecustomize/__init__.*", "python"},
    {"usercustomize/__init__.*", "python"},
    {"*.egg-link", "python"},
    {"pyvenv.cfg", "python"},
    {".pdbrc", "python"},
    {".pythonrc*", "python"},
    {"Cargo.toml", "cargo"},
    {"rust-toolchain", "cargo"},
    {"rust-toolchain.toml", "cargo"},
    {".cargo/", "cargo"},
    {"build.rs", "cargo"},
    {"go.mod", "go"},
    {"go.work", "go"},
    {"gradlew", "gradle"},
    {"*.gradle", "gradle"},
    {"*.gradle.kts", "gradle"},
    {"gradle.properties", "gradle"},
    {"gradle-wrapper.*", "gradle"},
    {"pom.xml", "maven"},
    {"mvnw", "maven"},
    {".mvn/", "maven"},
    {"Gemfile", "bundler"},
    {"*.gemspec", "bundler"},
    {".bundle/", "bundler"},
    {"Rakefile", "rake"},
    {"composer.json", "composer"},
    {"composer.lock", "composer"},
    {"Dockerfile", "container builds"},
    {"Dockerfile.*", "container builds"},
    {"Containerfile", "container builds"},
    {"*.Dockerfile", "container builds"},
    {"docker-bake.hcl", "container builds"},
    {"docker-compose*.yml", "compose"},
    {"docker-compose*.yaml", "compose"},
    {"compose.yml", "compose"},
    {"compose.yaml", "compose"},
    {"compose.*.yml", "compose"},
    {"compose.*.yaml", "compose"},
    {".env", "compose"},
    {"Vagrantfile", "vagrant"},
    {"Procfile", "foreman"},
    {".github/workflows/", "CI"},
    {".github/actions/", "CI"},
    {"action.yml", "CI"},
    {"action.yaml", "CI"},
    {".gitlab-ci.yml", "CI"},
    {".circleci/", "CI"},
    {".travis.yml", "CI"},
    {"Jenkinsfile", "CI"},
    {"azure-pipelines.yml", "CI"},
    {"bitbucket-pipelines.yml", "CI"},
    {".buildkite/", "CI"},
    {".ci/", "CI"},
    {".drone.yml", "CI"},
    {".woodpecker.yml", "CI"},
    {".woodpecker/", "CI"},
    {".appveyor.yml", "CI"},
    {"appveyor.yml", "CI"},
    {".cirrus.yml", "CI"},
    {".cirrus.star", "CI"},
    {".gitea/", "CI"},
    {".forgejo/", "CI"},
    {".gitlab/", "CI"},
    {".semaphore/", "CI"},
    {".azure-pipelines/", "CI"},
    {"azure-pipelines.yaml", "CI"},
    {".builds/", "CI"},
    {".build.yml", "CI"},
    {".tekton/", "CI"},
    {".teamcity/", "CI"},
    {"cloudbuild.yaml", "CI"},
    {"buildspec.yml", "CI"},
    {"netlify.toml", "CI"},
    {"vercel.json", "CI"},
    {"wrangler.toml", "CI"},
    {"fly.toml", "CI"},
    {".pre-commit-config.yaml", "git's hooks"},
    {".lintstagedrc*", "git's hooks"},
    {".husky/", "git's hooks"},
    {".githooks/", "git's hooks"},
    {".pre-commit-config.yml", "git's hooks"},
    {".pre-commit-hooks.yaml", "git's hooks"},
    {"lefthook.*", "git's hooks"},
    {".lefthook.*", "git's hooks"},
    {"lefthook-local.*", "git's hooks"},
    {".lefthook-local.*", "git's hooks"},
    {".lefthook/", "git's hooks"},
    {".overcommit.yml", "git's hooks"},
    {".git-hooks/", "git's hooks"},
    {".simple-git-hooks.*", "git's hooks"},
    {"simple-git-hooks.*", "git's hooks"},
    {".huskyrc*", "git's hooks"},
    {".gitattributes", "git"},
    {".gitmodules", "git"},
    {"HEAD", "git"},
    {"config", "git"},
    {".gitconfig", "git"},
    {".envrc", "direnv"},
    {".mise.toml", "mise"},
    {".mise/", "mise"},
    {"mise.toml", "mise"},
    {"mise.*.toml", "mise"},
    {".mise.*.toml", "mise"},
    {".tool-versions", "asdf"},
    {"AGENTS.md", "agents"},
    {"AGENTS.override.md", "agents"},
    {"CLAUDE.md", "agents"},
    {"CLAUDE.local.md", "agents"},
    {"GEMINI.md", "agents"},
    {".cursorrules", "agents"},
    {".mcp.json", "agents"},
    {".claude/", "agents"},
    {".cursor/", "agents"},
    {".gemini/", "agents"},
    {".codex/", "agents"},
    {".agents/", "agents"},
    {".github/copilot-instructions.md", "agents"},
    {"AGENT.md", "agents"},
    {"QWEN.md", "agents"},
    {"CRUSH.md", "agents"},
    {"WARP.md", "agents"},
    {"SKILL.md", "agents"},
    {".windsurfrules", "agents"},
    {".clinerules", "agents"},
    {".clinerules/", "agents"},
    {".junie/", "agents"},
    {".factory/", "agents"},
    {".trae/", "agents"},
    {".augment/", "agents"},
    {".augment-guidelines", "agents"},
    {".goosehints", "agents"},
    {".goose/", "agents"},
    {".openhands/", "agents"},
    {".roomodes", "agents"},
    {".kilocodemodes", "agents"},
    {".aider*", "agents"},
    {".rules", "agents"},
    {".copilot/", "agents"},
    {".warp/", "agents"},
    {".rovodev/", "agents"},
    {".amp/", "agents"},
    {".crush/", "agents"},
    {".serena/", "agents"},
    {"opencode.jsonc", "agents"},
    {"crush.json", "agents"},
    {"mcp.json", "agents"},
    {".github/prompts/", "agents"},
    {".github/instructions/", "agents"},
    {".github/agents/", "agents"},
    {".github/chatmodes/", "agents"},
    {".github/hooks/", "agents"},
    {".github/skills/", "agents"},
    {".vscode/", "editors"},
    {"*.code-workspace", "editors"},
    {".idea/", "editors"},
    {".zed/", "editors"},
    {".devcontainer/", "editors"},
    {".exrc", "editors"},
    {".nvim.lua", "editors"},
    {".vimrc", "editors"},
    {".dir-locals.el", "editors"},
    {".vim/", "editors"},
    {".gvimrc", "editors"},
    {".nvimrc", "editors"},
    {".nvim/", "editors"},
    {".lvimrc", "editors"},
    {".lazy.lua", "editors"},
    {".luarc.json", "editors"},
    {".emacs", "editors"},
    {".emacs.d/", "editors"},
    {".dir-locals-2.el", "editors"},
    {"*.sublime-project", "editors"},
    {".nova/", "editors"},
    {".fleet/", "editors"},
    {".replit", "editors"},
    {".gdbinit", "gdb"},
    {".gdbearlyinit", "gdb"},
    {".lldbinit", "lldb"},
    {".bashrc", "shells"},
    {".bash_profile", "shells"},
    {".profile", "shells"},
    {".zshrc", "shells"},
    {".zshenv", "shells"},
    {".bash_login", "shells"},
    {".bash_logout", "shells"},
    {".bash_aliases", "shells"},
    {".bash_completion", "shells"},
    {".zprofile", "shells"},
    {".zlogin", "shells"},
    {".zlogout", "shells"},
    {".kshrc", "shells"},
    {".cshrc", "shells"},
    {".tcshrc", "shells"},
    {".login", "shells"},
    {".logout", "shells"},
    {".inputrc", "shells"},
    {"wscript", "waf"},
    {"*.ninja", "ninja"},
    {"deno.json", "deno"},
    {"deno.jsonc", "deno"},
    {"build.xml", "ant"},
    {"*.sbt", "sbt"},
    {"*.csproj", "dotnet"},
    {"*.fsproj", "dotnet"},
    {"*.vbproj", "dotnet"},
    {"*.vcxproj", "dotnet"},
    {"*.props", "dotnet"},
    {"*.targets", "dotnet"},
    {"*.sln", "dotnet"},
    {"nuget.config", "dotnet"},
    {".vs/", "dotnet"},
    {"mix.exs", "mix"},
    {".iex.exs", "mix"},
    {"rebar.config", "rebar"},
    {"dune", "dune"},
    {"dune-project", "dune"},
    {"*.opam", "dune"},
    {".ocamlinit", "dune"},
    {"Setup.hs", "cabal"},
    {"*.cabal", "cabal"},
    {"cabal.project", "cabal"},
    {"stack.yaml", "cabal"},
    {".ghci", "cabal"},
    {"Package.swift", "swift"},
    {"project.clj", "clojure"},
    {"deps.edn", "clojure"},
    {".Rprofile", "R"},
    {".Renviron", "R"},
    {".irbrc", "ruby"},
    {".pryrc", "ruby"},
    {".rspec", "ruby"},
    {".rubocop.yml", "ruby"},
    {"Podfile", "xcode"},
    {"*.podspec", "xcode"},
    {"Fastfile", "xcode"},
    {"*.tf", "terraform"},
    {".terraform/", "terraform"},
    {"ansible.cfg", "ansible"},
    {".hg/", "hg"},
    {".jj/", "jj"},
    {"devbox.json", "devbox"},
    {".xinitrc", "what starts with a session"},
    {".xprofile", "what starts with a session"},
    {".xsession", "what starts with a session"},
    {".xsessionrc", "what starts with a session"},
    {".pam_environment", "what starts with a session"},
    {".tmux.conf", "what starts with a session"},
    {".screenrc", "what starts with a session"},
    {".local/bin/", "what starts with a session"},
    {".local/share/applications/", "what starts with a session"},
    {".local/share/systemd/", "what starts with a session"},
    {".config/", "many programs"},
    {".ssh/", "ssh"},
    {".docker/", "docker"},
    {".kube/", "kubectl"},
    {".mailcap", "mail"},
    {".forward", "mail"},
    {".curlrc", "curl"},
    {".wgetrc", "wget"},
};

/* The end of the path, whose last name is at `at`, that has as many names as the pattern; NULL: there are not so
 * many. */
static const char *last_names(const char *path, const char *at, const char *pattern)
{
    for (; (pattern = strchr(pattern, '/')); pattern++) {
        if (at < path + 2)
            return NULL;
        for (at -= 2; at > path && at[-1] != '/'; at--)
            ;
    }
    return at;
}

static bool is_folder(const char *pattern)
{
    return pattern[strlen(pattern) - 1] == '/';
}

/* A copy of a whole tree that an agent keeps in its folder is none of what it obeys. */
static bool is_below(const char *path, const char *folder)
{
    const size_t len = strlen(folder);

    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncasecmp(at, folder, len) == 0 && at[len] &&
            strncmp(at + len, "worktrees/", 10) != 0)
            return true;
    }
    return false;
}

/* A star at the beginning is the only one then, and stands for a point, too. */
static bool is_match(const char *pattern, const char *names, size_t names_len)
{
    if (*pattern == '*') {
        const size_t len = strlen(pattern) - 1;

        return names_len > len && strcasecmp(names + names_len - len, pattern + 1) == 0;
    }
    return tolower((unsigned char)*pattern) == tolower((unsigned char)*names) &&
           fnmatch(pattern, names, FNM_PATHNAME | FNM_PERIOD | FNM_CASEFOLD) == 0;
}

/* A bit for what a name begins with; some share one. */
static uint64_t letter_of(const char *name)
{
    return UINT64_C(1) << (tolower((unsigned char)*name) & 63);
}

static uint64_t letters_of(const char *path)
{
    uint64_t letters = letter_of(path);

    while ((path = strchr(path, '/')))
        letters |= letter_of(++path);
    return letters;
}

const char *run_later_by(const char *path)
{
    const char *name = path_name(path);
    const size_t name_len = strlen(name);
    const uint64_t letters = letters_of(path); /* few patterns begin with one of them */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *pattern = known[i].pattern, *names;

        if (*pattern != '*' && !(letter_of(pattern) & letters))
            continue;
        if (*pattern == '.' && is_folder(pattern)) {
            if (is_below(path, pattern))
                return known[i].by;
            continue;
        }
        names = last_names(path, name, pattern);
        if (names && is_match(pattern, names, name_len + (size_t)(name - names)))
            return known[i].by;
    }
    return NULL;
}

/* The last names of the path are the first `len` bytes of `names`. */
static bool ends_with(const char *path, const char *names, size_t len)
{
    const size_t path_len = strlen(path);

    return path_len >= len && strncasecmp(path + path_len - len, names, len) == 0 &&
           (path_len == len || path[path_len - len - 1] == '/');
}

const char *run_later_through(const char *path)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (const char *slash = known[i].pattern; (slash = strchr(slash, '/')); slash++)
            if (ends_with(path, known[i].pattern, (size_t)(slash - known[i].pattern)))
                return known[i].by;
    return NULL;
}
