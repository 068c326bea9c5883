// The calls of a model (session/...), which only Cordon's server has: shell text in, and the text that
// a model is to see out.
import { Disconnected, InvalidRequest, RpcError } from './errors.js';
import { layerToWire } from './layers.js';
import { only } from './sandbox.js';

const OF_CALL = ['signal', 'timeoutMs', 'until', 'yieldTimeMs', 'maxOutputTokens'];
const OF_EXEC = [...OF_CALL, 'cwd', 'sandbox', 'layer', 'tty', 'stdin', 'input', 'screen', 'rows', 'columns', 'env', 'shell', 'login',
  'threadId', 'trace'];

const answered = (result) => ({
  denials: [],
  ...result,
  output: Buffer.from(result.output, 'base64'),
});

/** The parameters, and what is for the call itself. */
const split = ({ signal, timeoutMs, until, ...options }) => [
  { ...options, ...(until !== undefined && { until: typeof until === 'string' ? { text: until } : until }) },
  { signal, timeoutMs },
];

export class Sessions {
  #client;

  constructor(client) {
    this.#client = client;
  }

  async exec(cmd, options = {}) {
    only(options, OF_EXEC);
    const [{ cwd, sandbox, layer, input, stdin = false, ...params }, how] = split(options);
    return answered(await this.#client.call('session/exec', {
      cmd, cwd: this.#client.uriOf(cwd), sandbox: this.#client.sandboxOf(sandbox, layer), pipeStdin: stdin,
      ...(layer && { layer: layerToWire(layer) }),
      ...(input !== undefined && { stdin: input }), ...params,
    }, how));
  }

  async start(cmd, options = {}) {
    const { tty = true } = options;
    return new Session(this, await this.exec(cmd, { screen: tty, ...options, tty }));
  }

  async write(sessionId, chars = '', options = {}) {
    only(options, [...OF_CALL, 'close']);
    const [params, how] = split(options);
    return answered(await this.#client.call('session/write', { sessionId, chars, ...params }, how));
  }

  async wait(sessionId, options = {}) {
    only(options, OF_CALL);
    const [params, how] = split(options);
    return answered(await this.#client.call('session/wait', { sessionId, ...params }, how));
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

export class Session {
  #sessions;

  constructor(sessions, answer) {
    this.#sessions = sessions;
    this.answer = answer;
  }

  get isRunning() {
    return this.answer.sessionId !== null;
  }

  #id() {
    if (!this.isRunning) throw new InvalidRequest(RpcError.INVALID_REQUEST, 'the session has ended');
    return this.answer.sessionId;
  }

  async #take(answer) {
    this.answer = await answer;
    return this.answer;
  }

  async write(chars = '', options = {}) {
    return this.#take(this.#sessions.write(this.#id(), chars, options));
  }

  async wait(options = {}) {
    return this.isRunning ? this.#take(this.#sessions.wait(this.#id(), options)) : this.answer;
  }

  async screen(options = {}) {
    return this.#sessions.screen(this.#id(), options);
  }

  async terminate(options = {}) {
    return this.isRunning ? this.#take(this.#sessions.terminate(this.#id(), options)) : this.answer;
  }

  async [Symbol.asyncDispose]() {
    try {
      await this.terminate({ graceMs: 0 });
    } catch (error) {
      if (!(error instanceof Disconnected || error instanceof InvalidRequest)) throw error; // gone, or just ended
    }
  }

  async* [Symbol.asyncIterator]() {
    yield this.answer;
    while (this.isRunning) {
      const answer = await this.wait({ until: { bytes: 1 } });
      if (answer.outputBytes || !this.isRunning) yield answer;
    }
  }
}
