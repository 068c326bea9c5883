// Files on the server's host. With a sandbox a call is carried out inside of it, and the kernel
// decides what it may.
import { InvalidRequest, NotFound, SystemRefused, rpcError } from './errors.js';
import { layerToWire } from './layers.js';
import { toPath, toWire, withWorkspace } from './sandbox.js';

const BLOCK = 1 << 20; // bytes of fs/readBlock and fs/writeBlock
const SAYS_NOT_OF_WHAT = [InvalidRequest, NotFound, SystemRefused];
let handles = 0;

/** An open file, made by Files.open(). Ends with the connection. */
export class Handle {
  #client;
  #id;

  constructor(client, id) {
    this.#client = client;
    this.#id = id;
  }

  /** At most 1 MiB; empty at the end. */
  async read(offset, size = BLOCK) {
    const answer = await this.#client.call('fs/readBlock', { handleId: this.#id, offset, len: size });
    return Buffer.from(answer.chunk, 'base64');
  }

  async write(offset, data) {
    const bytes = Buffer.from(data);
    for (let at = 0; at < bytes.length; at += BLOCK)
      await this.#client.call('fs/writeBlock', {
        handleId: this.#id, offset: offset + at, chunk: bytes.subarray(at, at + BLOCK).toString('base64'),
      });
  }

  async close() {
    await this.#client.call('fs/close', { handleId: this.#id });
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

export class Files {
  #client;
  #sandbox;
  #layer;
  #follow;

  constructor(client, sandbox, { followSymlinks = true, layer } = {}) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#layer = layer;
    this.#follow = followSymlinks ? {} : { followSymlinks };
  }

  /** The same, carried out in a sandbox, or a layer. */
  inside(sandbox, options) {
    return new Files(this.#client, sandbox, options);
  }

  #uri(path) {
    if (!String(path)) throw new TypeError('a path that is empty'); // which would be a whole folder, for remove(), too
    return this.#client.uriOf(path);
  }

  async #call(method, params) {
    const sandbox = withWorkspace(toWire(this.#client.given(this.#sandbox, this.#layer)), this.#client.uriOf());
    const layer = this.#layer && { layer: layerToWire(this.#layer) };
    try {
      return await this.#client.call(`fs/${method}`, { ...params, ...layer, sandbox });
    } catch (error) {
      if (!SAYS_NOT_OF_WHAT.some((kind) => error instanceof kind)) throw error;
      const names = [params.path, params.sourcePath, params.destinationPath].filter(Boolean).map(toPath).join(' to ');
      throw rpcError({ ...error, message: `${names}: ${error.text}` });
    }
  }

  async read(path) {
    const answer = await this.#call('readFile', { path: this.#uri(path), ...this.#follow });
    return Buffer.from(answer.dataBase64, 'base64');
  }

  async write(path, data) {
    const dataBase64 = Buffer.from(data).toString('base64');
    await this.#call('writeFile', { path: this.#uri(path), dataBase64, ...this.#follow });
  }

  async makeDirectory(path, { parents = true } = {}) {
    await this.#call('createDirectory', { path: this.#uri(path), recursive: parents, ...this.#follow });
  }

  metadata(path) {
    return this.#call('getMetadata', { path: this.#uri(path), ...this.#follow });
  }

  async realPath(path) {
    return toPath((await this.#call('canonicalize', { path: this.#uri(path) })).path);
  }

  async list(path) {
    const { entries } = await this.#call('readDirectory', { path: this.#uri(path) });
    return entries.map(({ fileName, isDirectory, isFile }) => ({ name: fileName, isDirectory, isFile }));
  }

  async walk(path, options = {}) {
    const answer = await this.#call('walk', {
      path: this.#uri(path),
      options: {
        maxDepth: 64, maxDirectories: 10000, maxEntries: 50000, followDirectorySymlinks: false, ...options,
      },
    });
    const named = (kind) => answer.entries.filter((one) => one.kind === kind).map((one) => toPath(one.path));
    return {
      directories: named('directory'), files: named('file'), errors: answer.errors, truncated: answer.truncated,
    };
  }

  async remove(path, { recursive = true, missingOk = true } = {}) {
    await this.#call('remove', { path: this.#uri(path), recursive, force: missingOk, ...this.#follow });
  }

  async copy(source, destination, { recursive = false } = {}) {
    await this.#call('copy', { sourcePath: this.#uri(source), destinationPath: this.#uri(destination), recursive });
  }

  /** `mode`: "read", or "replace" to make or empty it for writing. */
  async open(path, mode = 'read') {
    handles += 1;
    const id = `h${handles}`;
    await this.#call('open', { handleId: id, path: this.#uri(path), mode });
    return new Handle(this.#client, id);
  }

  /** Waits until one of the paths, which are not there, may have appeared. false at once: the server
   * cannot watch them, or something is there already. */
  waitFor(paths) {
    return this.#client.watch(paths.map((path) => this.#uri(path)));
  }
}
