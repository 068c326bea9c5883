// The calls of a model (session/...), which only Cordon's server has: shell text in, and the text that
// a model is to see out.
import { toUri } from './sandbox.js';

const answered = (result) => ({
  denials: [],
  ...result,
  output: Buffer.from(result.output, 'base64'),
});

export class Sessions {
  #client;

  constructor(client) {
    this.#client = client;
  }

  /** Runs shell text until it ends or the time is up. */
  async exec(cmd, cwd, options = {}) {
    return answered(await this.#client.call('session/exec', { cmd, cwd: toUri(cwd), ...options, sandbox: options.sandbox ?? 'default' }));
  }

  async write(sessionId, chars = '', options = {}) {
    return answered(await this.#client.call('session/write', { sessionId, chars, ...options }));
  }

  async wait(sessionId, options = {}) {
    return answered(await this.#client.call('session/wait', { sessionId, ...options }));
  }

  async terminate(sessionId, options = {}) {
    return answered(await this.#client.call('session/terminate', { sessionId, ...options }));
  }

  screen(sessionId, options = {}) {
    return this.#client.call('session/screen', { sessionId, ...options });
  }

  async list() {
    return (await this.#client.call('session/list', {})).sessions;
  }
}
