// Change layers (layer/...), which only Cordon's server has: what commands write, kept apart from the real files.
import { Disconnected, InvalidRequest } from './errors.js';
import { only, toUri, toWire, withWorkspace } from './sandbox.js';

const PAGE = 1000; // changes of one layer/changes
const BLOCK = 1 << 20; // bytes of one layer/read
const OF_OPEN = ['name', 'cwd', 'sandbox', 'direct', 'git', 'maxBytes'];
const UNRESERVED = /[A-Za-z0-9\-._~/]/;

/** As a call takes it. */
export function layerToWire(layer) {
  return layer === undefined || layer === null ? null : { layerId: typeof layer === 'string' ? layer : layer.id };
}

/** Of a path that may be no UTF-8. */
function uriOfChange({ path, pathBase64 }) {
  if (pathBase64 === undefined) return toUri(path);
  const bytes = [...Buffer.from(pathBase64, 'base64')].map((byte) => {
    const char = String.fromCharCode(byte);
    return UNRESERVED.test(char) ? char : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  });
  return `file://${bytes.join('')}`;
}

export class Layers {
  #client;

  constructor(client) {
    this.#client = client;
  }

  async open(options = {}) {
    only(options, OF_OPEN);
    const { name, cwd, direct = [], git = false, maxBytes = 0 } = options;
    const where = this.#client.uriOf(cwd);
    const sandbox = withWorkspace(toWire(options.sandbox ?? this.#client.sandbox), where);
    if (name !== undefined) {
      try {
        return new Layer(this.#client, await this.#client.call('layer/info', { layerId: name }), sandbox);
      } catch (error) {
        if (!(error instanceof InvalidRequest) || error.reason !== 'no-layer') throw error;
      }
    }
    return new Layer(this.#client, await this.#client.call('layer/create', {
      name: name ?? null, cwd: where, sandbox,
      direct: direct.map((path) => this.#client.uriOf(path)), git, maxBytes,
    }), sandbox);
  }

  async list({ cwd, sizes = false } = {}) {
    const where = cwd === undefined ? null : this.#client.uriOf(cwd);
    return (await this.#client.call('layer/list', { cwd: where, sizes })).layers;
  }
}

export class Layer {
  #client;

  constructor(client, { layerId, name, roots, warnings = [] }, sandbox) {
    this.#client = client;
    this.id = layerId;
    this.name = name;
    this.roots = roots.filter(({ direct }) => !direct).map(({ path }) => path);
    this.warnings = warnings;
    this.sandbox = sandbox; // of commands in it that say none
  }

  #call(method, params = {}) {
    return this.#client.call(`layer/${method}`, { layerId: this.id, ...params });
  }

  #uri(one) {
    if (typeof one === 'object') return uriOfChange(one);
    if (!String(one)) throw new TypeError('a path that is empty'); // which would be a whole folder
    return this.#client.uriOf(one);
  }

  /** Paths, and of changes what they were when they were listed. */
  #meant(what) {
    const named = Array.isArray(what) ? what : [what];
    if (what === undefined || what === null) throw new TypeError('what is meant is missing: paths, changes, or { all: true }');
    if (what.all === true) return { all: true };
    const shown = named.filter((one) => typeof one === 'object');
    const gone = shown.filter(({ from }) => from !== undefined)
      .map(({ from, fromBase64 }) => [uriOfChange({ path: from, pathBase64: fromBase64 }), '']);
    return {
      paths: named.map((one) => this.#uri(one)),
      expect: Object.fromEntries([...gone, ...shown.map((one) => [this.#uri(one), one.stamp])]),
    };
  }

  async changes({ paths, step } = {}) {
    const params = { paths: paths ? paths.map((one) => this.#uri(one)) : null, stepId: step ?? null, limit: PAGE };
    const { changes, counts, state, problems, next } = await this.#call('changes', params);
    for (let after = next; after;) {
      const page = await this.#call('changes', { ...params, after });
      changes.push(...page.changes);
      after = page.next;
    }
    return { changes, counts, state, problems };
  }

  diff(path, { step, context = 3, maxBytes = 1 << 20 } = {}) {
    return this.#call('diff', { path: this.#uri(path), stepId: step ?? null, context, maxBytes });
  }

  async read(path, side = 'layer') {
    const chunks = [];
    for (let offset = 0; ;) {
      const { chunk, eof } = await this.#call('read', { path: this.#uri(path), side, offset, limit: BLOCK });
      chunks.push(Buffer.from(chunk, 'base64'));
      offset += chunks.at(-1).length;
      if (eof) return Buffer.concat(chunks);
    }
  }

  accept(what, options = {}) {
    only(options, ['force', 'marked', 'text', 'dryRun']);
    return this.#call('accept', { ...this.#meant(what), ...options });
  }

  drop(what, options = {}) {
    only(options, ['dryRun']);
    return this.#call('drop', { ...this.#meant(what), ...options });
  }

  dropStep(step, options = {}) {
    only(options, ['dryRun']);
    return this.#call('drop', { stepId: step, ...options });
  }

  undo(options = {}) {
    only(options, ['acceptId', 'paths', 'force', 'dryRun']);
    const { paths, ...more } = options;
    return this.#call('undo', { ...more, ...(paths && { paths: paths.map((one) => this.#uri(one)) }) });
  }

  async refresh() {
    return (await this.#call('refresh')).alive;
  }

  info() {
    return this.#call('info');
  }

  async close({ keep = true } = {}) {
    await this.#call('close', { keep });
  }

  async [Symbol.asyncDispose]() {
    try {
      await this.close();
    } catch (error) {
      if (!(error instanceof Disconnected || error instanceof InvalidRequest)) throw error; // it is gone
    }
  }
}
