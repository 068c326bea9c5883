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

/** An option that nobody knows is not believed to count: "profile" for one of a sandbox's, "timeout" for "timeoutMs". */
export function only(options, names) {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new TypeError(`there is no option ${unknown}; there are ${names.join(', ')}`);
}

/** `isAsking`: somebody answers what the sandbox would refuse, if it does not say otherwise. */
export function toWire(sandbox, isAsking = false) {
  let given = sandbox ?? 'default';
  if (given === 'none' || given.permissions) return given;
  if (typeof given === 'string') {
    if (!isAsking) return given;
    given = given === 'default' ? {} : { profile: given };
  }
  const { workspace, presets, ...words } = given;
  return {
    ...(isAsking && { watch: 'ask' }),
    ...words,
    profile: words.profile ?? null,
    ...(workspace !== undefined && { cwd: toUri(workspace) }),
    ...(presets && { with: presets }),
  };
}

/** As it goes over the wire, for a call that starts nowhere. */
export function withWorkspace(given, uri) {
  const words = typeof given === 'string' && given !== 'none' ? { profile: given === 'default' ? null : given } : given;
  return words.profile === undefined ? words : { cwd: uri, ...words };
}
