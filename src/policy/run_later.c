/* See run_later.h. A pattern without a slash is about the last name, any other about the last names. */
#include "policy/run_later.h"

#include "base/path.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *pattern, *by;
} known[] = {
    {"Makefile", "make"},
    {"makefile", "make"},
    {"GNUmakefile", "make"},
    {"*.mk", "make"},
    {"CMakeLists.txt", "cmake"},
    {"*.cmake", "cmake"},
    {"meson.build", "meson"},
    {"configure", "builds"},
    {"configure.ac", "builds"},
    {"justfile", "just"},
    {"Taskfile.yml", "task"},
    {"BUILD.bazel", "bazel"},
    {"WORKSPACE", "bazel"},
    {"MODULE.bazel", "bazel"},
    {".bazelrc", "bazel"},
    {"*.nix", "nix"},
    {"package.json", "npm"},
    {".npmrc", "npm"},
    {".yarnrc.yml", "yarn"},
    {".pnpmfile.cjs", "pnpm"},
    {"pnpmfile.js", "pnpm"},
    {"*.config.js", "node's tools"},
    {"*.config.cjs", "node's tools"},
    {"*.config.mjs", "node's tools"},
    {"*.config.ts", "node's tools"},
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
    {"build.rs", "cargo"},
    {".cargo/config.toml", "cargo"},
    {".cargo/config", "cargo"},
    {"go.mod", "go"},
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
    {".github/workflows/*", "CI"},
    {".github/actions/*/action.yml", "CI"},
    {".gitlab-ci.yml", "CI"},
    {".circleci/config.yml", "CI"},
    {".travis.yml", "CI"},
    {"Jenkinsfile", "CI"},
    {"azure-pipelines.yml", "CI"},
    {"bitbucket-pipelines.yml", "CI"},
    {".buildkite/*", "CI"},
    {".ci/*", "CI"},
    {".pre-commit-config.yaml", "git's hooks"},
    {"lefthook.yml", "git's hooks"},
    {".lintstagedrc*", "git's hooks"},
    {".husky/*", "git's hooks"},
    {".githooks/*", "git's hooks"},
    {".gitattributes", "git"},
    {".gitmodules", "git"},
    {".envrc", "direnv"},
    {".mise.toml", "mise"},
    {"mise.toml", "mise"},
    {".tool-versions", "asdf"},
    {"AGENTS.md", "agents"},
    {"CLAUDE.md", "agents"},
    {"GEMINI.md", "agents"},
    {".cursorrules", "agents"},
    {".mcp.json", "agents"},
    {".claude/*", "agents"},
    {".cursor/*", "agents"},
    {".gemini/*", "agents"},
    {".codex/*", "agents"},
    {".agents/*", "agents"},
    {".github/copilot-instructions.md", "agents"},
    {".vscode/*", "editors"},
    {".idea/*", "editors"},
    {".zed/*", "editors"},
    {".devcontainer/*", "editors"},
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

const char *run_later_by(const char *path)
{
    const char *name = path_name(path);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *names = last_names(path, name, known[i].pattern);
        bool is_near = names && (*known[i].pattern == '*' || *known[i].pattern == *names);

        if (is_near && fnmatch(known[i].pattern, names, FNM_PATHNAME | FNM_PERIOD) == 0)
            return known[i].by;
    }
    return NULL;
}
