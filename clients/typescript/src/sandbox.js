// What a command or a file call may do, as the protocol says it.
import { fileURLToPath, pathToFileURL } from 'node:url';

/** An absolute path as the file URI that goes over the wire; a URI stays. */
export function toUri(path) {
  const text = String(path);
  return text.startsWith('file:') ? text : pathToFileURL(text).href;
}

export function toPath(uri) {
  return fileURLToPath(uri);
}

function entry(path, access) {
  if (path.startsWith(':')) return { path: { type: 'special', value: { kind: path.slice(1) } }, access };
  if (/[*?[]/.test(path)) return { path: { type: 'glob_pattern', pattern: path }, access };
  return { path: { type: 'path', path: toUri(path) }, access };
}

/** The `sandbox` object of the protocol. */
export function sandbox(workspace, options = {}) {
  const {
    read = [':root'], write = [':project_roots', ':slash_tmp', ':tmpdir'], deny = [], network = false,
    watch,
  } = options;
  return {
    permissions: {
      type: 'managed',
      network: network ? 'enabled' : 'restricted',
      file_system: {
        type: 'restricted',
        entries: [...read.map((path) => entry(path, 'read')), ...write.map((path) => entry(path, 'write')),
          ...deny.map((path) => entry(path, 'deny'))],
      },
      ...(watch && { watch }),
    },
    cwd: toUri(workspace),
    workspaceRoots: [toUri(workspace)],
    windowsSandboxLevel: 'disabled',
  };
}
