/* See run_later.h. A pattern without a slash is about the last name, one that ends with a slash about all that is below such
 * names, at any depth, and any other about the last names. Capitals are small letters, too: some programs take both, and
 * so do some file systems. */
#include "policy/run_later.h"

#include "base/path.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *pattern, *by;
} known[] = {
    {"Makefile", "make"},
    {"GNUmakefile", "make"},
    {"*.mk", "make"},
    {"Makefile.am", "make"},
    {"Makefile.in", "make"},
    {"SConstruct", "scons"},
    {"CMakeLists.txt", "cmake"},
    {"*.cmake", "cmake"},
    {"CMakePresets.json", "cmake"},
    {"CMakeUserPresets.json", "cmake"},
    {"meson.build", "meson"},
    {"configure", "builds"},
    {"configure.ac", "builds"},
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
    {"*.nix", "nix"},
    {"package.json", "npm"},
    {".npmrc", "npm"},
    {".yarnrc", "yarn"},
    {".yarnrc.yml", "yarn"},
    {".yarn/", "yarn"},
    {"bunfig.toml", "bun"},
    {".pnpmfile.cjs", "pnpm"},
    {"pnpmfile.*", "pnpm"},
    {"*.config.js", "node's tools"},
    {"*.config.cjs", "node's tools"},
    {"*.config.mjs", "node's tools"},
    {"*.config.ts", "node's tools"},
    {"*.config.mts", "node's tools"},
    {"*.config.cts", "node's tools"},
    {".eslintrc.*", "node's tools"},
    {"Gruntfile.js", "node's tools"},
    {"gulpfile.*", "node's tools"},
    {"setup.py", "pip"},
    {"setup.cfg", "pip"},
    {"pyproject.toml", "pip"},
    {"conftest.py", "pytest"},
    {"pytest.ini", "pytest"},
    {"noxfile.py", "nox"},
    {"tox.ini", "tox"},
    {"sitecustomize.py", "python"},
    {"usercustomize.py", "python"},
    {"*.pth", "python"},
    {"Cargo.toml", "cargo"},
    {"rust-toolchain", "cargo"},
    {"rust-toolchain.toml", "cargo"},
    {".cargo/", "cargo"},
    {"build.rs", "cargo"},
    {"go.mod", "go"},
    {"go.work", "go"},
    {"build.gradle", "gradle"},
    {"build.gradle.kts", "gradle"},
    {"settings.gradle", "gradle"},
    {"settings.gradle.kts", "gradle"},
    {"gradlew", "gradle"},
    {"pom.xml", "maven"},
    {"mvnw", "maven"},
    {"Gemfile", "bundler"},
    {"Rakefile", "rake"},
    {"*.gemspec", "bundler"},
    {"composer.json", "composer"},
    {"Dockerfile", "container builds"},
    {"Dockerfile.*", "container builds"},
    {"Containerfile", "container builds"},
    {"docker-compose*.yml", "compose"},
    {"docker-compose*.yaml", "compose"},
    {"compose.yml", "compose"},
    {"compose.yaml", "compose"},
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
    {".pre-commit-config.yaml", "git's hooks"},
    {"lefthook.yml", "git's hooks"},
    {".lintstagedrc*", "git's hooks"},
    {".husky/", "git's hooks"},
    {".githooks/", "git's hooks"},
    {".gitattributes", "git"},
    {".gitmodules", "git"},
    {"HEAD", "git"},
    {"config", "git"},
    {".gitconfig", "git"},
    {".envrc", "direnv"},
    {".mise.toml", "mise"},
    {".mise/", "mise"},
    {"mise.toml", "mise"},
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
    {".vscode/", "editors"},
    {"*.code-workspace", "editors"},
    {".idea/", "editors"},
    {".zed/", "editors"},
    {".devcontainer/", "editors"},
    {".exrc", "editors"},
    {".nvim.lua", "editors"},
    {".vimrc", "editors"},
    {".dir-locals.el", "editors"},
    {".gdbinit", "gdb"},
    {".lldbinit", "lldb"},
    {".bashrc", "shells"},
    {".bash_profile", "shells"},
    {".profile", "shells"},
    {".zshrc", "shells"},
    {".zshenv", "shells"},
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
        if (strncasecmp(at, folder, len) == 0)
            return at[len] && strncmp(at + len, "worktrees/", 10) != 0;
    }
    return false;
}

const char *run_later_by(const char *path)
{
    const char *name = path_name(path);
    const bool has_dot = *path == '.' || strstr(path, "/."); /* as all those folders have */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *pattern = known[i].pattern, *names;

        if (is_folder(pattern)) {
            if (has_dot && is_below(path, pattern))
                return known[i].by;
            continue;
        }
        names = last_names(path, name, pattern);
        if (names && (*pattern == '*' || tolower(*pattern) == tolower((unsigned char)*names)) &&
            fnmatch(pattern, names, FNM_PATHNAME | FNM_PERIOD | FNM_CASEFOLD) == 0)
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
