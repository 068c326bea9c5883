// Messages over a WebSocket (RFC 6455), or as lines over a Unix socket or the pipes of a server that
// we start. A transport has send(text), close(), and the callbacks onText(text) and onEnd(error).
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';

import { CordonError, Disconnected, NotAdmitted, ProgramNotFound, ServerEnded } from './errors.js';
import { addressOf, findUserToken, isProof, signedBy } from './user_token.js';

const TEXT = 1;
const BINARY = 2;
const CONTINUATION = 0;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const FRAME_MAX = 1 << 24; // bytes that the server takes in one
const MESSAGE_MAX = 1 << 30; // a file of 512 MiB is one message
const LOG_MAX = 2000; // bytes, of what a server of our own says last
const PATIENCE_MS = 10000; // until it has ended by itself
const HEAD_MAX = 1 << 16; // bytes
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // RFC 6455 1.3

/** Bytes that came in, taken off in pieces of known length. */
class Inbox {
  #chunks = [];
  length = 0;

  push(chunk) {
    this.#chunks.push(chunk);
    this.length += chunk.length;
  }

  /** undefined when they are not all here. */
  take(size) {
    if (this.length < size) return undefined;
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const whole = this.#chunks[0] ?? Buffer.alloc(0);
    this.#chunks = size < whole.length ? [whole.subarray(size)] : [];
    this.length -= size;
    return whole.subarray(0, size);
  }

  /** All up to and with `mark`, or undefined. */
  takeThrough(mark) {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const at = this.#chunks[0]?.indexOf(mark) ?? -1;
    return at < 0 ? undefined : this.take(at + mark.length);
  }
}

class Base {
  onText = () => {};
  onEnd = () => {};
  #isOver = false;

  /** Whatever a server sends ends its connection, and not the program that we are part of. */
  give(parts) {
    try {
      this.onText(Buffer.concat(parts).toString());
    } catch (error) {
      this.finish(new CordonError(`what is there does not speak the protocol (${error.message})`));
      this.drop();
    }
  }

  finish(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onEnd(error);
  }
}

class Lines extends Base {
  #in;
  #out;
  #parts = [];
  #held = 0; // bytes in them

  constructor(input, output) {
    super();
    this.#in = input;
    this.#out = output;
    input.on('data', (data) => this.#take(data));
    input.on('end', () => this.finish());
    input.on('close', () => this.finish());
    for (const stream of new Set([input, output])) stream.on('error', (error) => this.finish(error));
  }

  #take(data) {
    for (let end; (end = data.indexOf(10)) >= 0; data = data.subarray(end + 1)) {
      const line = [...this.#parts, data.subarray(0, end)];
      this.#parts = [];
      this.#held = 0;
      if (line.some((part) => part.toString('latin1').trim())) this.give(line);
    }
    if (data.length) this.#parts.push(data);
    this.#held += data.length;
    if (this.#held <= MESSAGE_MAX) return;
    this.finish(new CordonError(`a line of more than ${MESSAGE_MAX} bytes`));
    this.drop();
  }

  drop() {
    this.#parts = [];
    this.#in.destroy();
    this.#out.destroy();
  }

  send(text) {
    this.#out.write(`${text}\n`);
  }

  async close() {
    this.#out.end();
  }
}

/** A server that was started for us. What it says is kept for an error. */
class OwnServer extends Lines {
  #child;
  #log = Buffer.alloc(0);
  #hasEnded;

  constructor(child) {
    super(child.stdout, child.stdin);
    this.#child = child;
    this.#hasEnded = new Promise((resolve) => {
      child.once('exit', (status, signal) => {
        const patience = setTimeout(resolve, 1000, [status, signal]); // what it ran may hold its stderr open
        child.once('close', () => {
          clearTimeout(patience);
          resolve([status, signal]);
        });
      });
    });
    child.stderr.on('data', (data) => {
      this.#log = Buffer.concat([this.#log, data]).subarray(-LOG_MAX);
    });
  }

  /** It ends because the server does, unless it is said otherwise. */
  finish(error) {
    if (error instanceof CordonError) super.finish(error);
    else this.close().then(() => this.#hasEnded).then(([status, signal]) => super.finish(
      new ServerEnded(status, signal, this.#lastWords())));
  }

  #lastWords() {
    const lines = this.#log.toString().split('\n').filter((line) => line && !line.includes(' info '));
    return lines.slice(-3).join(' / ');
  }

  drop() {
    super.drop();
    this.#child.kill('SIGKILL');
  }

  /** Its input ends, so it ends, with all that it runs. */
  async close() {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PATIENCE_MS);
    super.close();
    await this.#hasEnded;
    clearTimeout(timer);
  }
}

function masked(payload, key) {
  const out = Buffer.from(payload);
  for (let i = 0; i < out.length; i += 1) out[i] ^= key[i & 3];
  return out;
}

const UNKNOWN = 'who listens there does not know your token: it is no server of yours, or one that was '
  + "told not to ask for it (then say token: '')";

/** What is wrong with the server's answer; undefined: nothing. */
function refusal(first, isAccepted) {
  const status = first.split(' ')[1];
  if (status === '401' || status === '403')
    return `the server refuses us (${first}): it wants its user's token, which is found in `
      + '~/.config/cordon/private, or the one that it was started with (token)';
  return status === '101' && isAccepted ? undefined : `the server does not speak WebSocket: ${first}`;
}

class WebSocketLines extends Base {
  #socket;
  #inbox = new Inbox();
  #parts = [];
  #held = 0; // bytes in them
  #head = null; // of the frame whose payload is not all here

  constructor(socket) {
    super();
    this.#socket = socket;
    socket.on('end', () => this.finish());
    socket.on('close', () => this.finish());
    socket.on('error', (error) => this.finish(error));
  }

  /** Upgrades the connection; rejects when the server refuses. */
  handshake(url, given) {
    const address = given === undefined && url.protocol === 'ws:' ? addressOf(this.#socket) : undefined;
    const known = address === undefined ? undefined : findUserToken(); // never sent
    const token = known === undefined ? given : signedBy(known, address);
    const key = randomBytes(16).toString('base64');
    const accepted = createHash('sha1').update(key + GUID).digest('base64');
    const lines = [`GET ${url.pathname || '/'}${url.search} HTTP/1.1`, `Host: ${url.host}`,
      'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${key}`];
    if (token) lines.push(`Authorization: Bearer ${token}`);
    this.#socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return new Promise((resolve, reject) => {
      this.onEnd = (error) => reject(error instanceof CordonError ? error
        : new Disconnected(`${url.host}: ${error?.message ?? 'closed'}`));
      const onData = (data) => {
        this.#inbox.push(data);
        const head = this.#inbox.takeThrough('\r\n\r\n')?.toString('latin1');
        if (head === undefined && this.#inbox.length > HEAD_MAX)
          this.#socket.destroy(new CordonError(`a head of more than ${HEAD_MAX} bytes`));
        if (head === undefined) return;
        this.#socket.off('data', onData);
        const [first] = head.split('\r\n');
        const field = /^sec-websocket-accept:\s*(\S+)/im.exec(head);
        const proof = /^cordon-proof:\s*(\S+)/im.exec(head)?.[1];
        const status = first.split(' ')[1];
        const why = refusal(first, field?.[1] === accepted)
          ?? (known === undefined || isProof(known, key, proof) ? undefined : UNKNOWN);
        if (why !== undefined) {
          this.#socket.destroy();
          reject(status === '101' || status === '401' || status === '403'
            ? new NotAdmitted(why) : new CordonError(why));
          return;
        }
        this.onEnd = () => {};
        this.#socket.on('data', (more) => this.#take(more));
        resolve();
        setImmediate(() => this.#take(Buffer.alloc(0))); // what came with the head
      };
      this.#socket.on('data', onData);
    });
  }

  #take(data) {
    if (data.length) this.#inbox.push(data);
    for (;;) {
      this.#head ??= this.#takeHead();
      if (!this.#head) return;
      const payload = this.#inbox.take(this.#head.size);
      if (!payload) return;
      const { opcode, isLast } = this.#head;
      this.#head = null;
      this.#takeFrame(opcode, isLast, payload);
    }
  }

  #takeHead() {
    const { length } = this.#inbox;
    if (length < 2) return null;
    const start = this.#inbox.take(2);
    const short = start[1] & 127;
    const more = short === 126 ? 2 : short === 127 ? 8 : 0;
    const rest = this.#inbox.take(more);
    if (!rest) {
      const all = this.#inbox.take(this.#inbox.length);
      this.#inbox.push(Buffer.concat([start, all]));
      return null;
    }
    const size = more === 0 ? short : more === 2 ? rest.readUInt16BE() : Number(rest.readBigUInt64BE());
    if (this.#held + size > MESSAGE_MAX) {
      this.#socket.destroy(new CordonError(`a message of more than ${MESSAGE_MAX} bytes`));
      return null;
    }
    return { opcode: start[0] & 15, isLast: Boolean(start[0] & 128), size };
  }

  #takeFrame(opcode, isLast, payload) {
    if (opcode === PING) this.#sendFrame(PONG, payload);
    else if (opcode === CLOSE) this.#socket.end();
    else if (opcode === TEXT || opcode === BINARY || opcode === CONTINUATION) {
      this.#parts.push(payload);
      this.#held += payload.length;
      if (!isLast) return;
      const parts = this.#parts;
      this.#parts = [];
      this.#held = 0;
      this.give(parts);
    }
  }

  drop() {
    this.#socket.destroy();
  }

  #sendFrame(opcode, payload, isLast = true) {
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 2 : size < 65536 ? 4 : 10);
    const key = randomBytes(4);
    head[0] = (isLast ? 128 : 0) | opcode;
    head[1] = 128 | (head.length === 2 ? size : head.length === 4 ? 126 : 127);
    if (head.length === 4) head.writeUInt16BE(size, 2);
    if (head.length === 10) head.writeBigUInt64BE(BigInt(size), 2);
    this.#socket.write(Buffer.concat([head, key, masked(payload, key)]));
  }

  send(text) {
    const bytes = Buffer.from(text);
    for (let at = 0; at === 0 || at < bytes.length; at += FRAME_MAX)
      this.#sendFrame(at === 0 ? TEXT : CONTINUATION, bytes.subarray(at, at + FRAME_MAX),
        at + FRAME_MAX >= bytes.length);
  }

  async close() {
    if (this.#socket.destroyed) return;
    this.#sendFrame(CLOSE, Buffer.from([1000 >> 8, 1000 & 255]));
    this.#socket.end();
  }
}

function connected(socket, event, signal) {
  signal?.addEventListener('abort', () => socket.destroy(signal.reason), { once: true });
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => reject(error instanceof CordonError ? error : new Disconnected(error.message)));
    socket.once(event, resolve);
  });
}

/** ws://HOST:PORT, wss://..., unix:PATH; until `signal` says that it takes too long. */
export async function openUrl(text, token, signal) {
  if (text.startsWith('unix:')) {
    const socket = net.connect(text.slice('unix:'.length));
    await connected(socket, 'connect', signal);
    return new Lines(socket, socket);
  }
  const url = URL.canParse?.(text) === false ? undefined : new URL(text);
  if (!url || !['ws:', 'wss:'].includes(url.protocol))
    throw new CordonError(`${text} should be ws://HOST:PORT, wss://HOST:PORT or unix:PATH`);
  const isSecure = url.protocol === 'wss:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (isSecure ? 443 : 80);
  const socket = isSecure ? tls.connect({ host, port, servername: host }) : net.connect({ host, port });
  await connected(socket, isSecure ? 'secureConnect' : 'connect', signal);
  socket.setNoDelay(true);
  const transport = new WebSocketLines(socket);
  await transport.handshake(url, token);
  return transport;
}

/** A server that is started for us and speaks on its stdin and stdout; in a session of its own, so that
 * Ctrl-C is for us to handle. */
export async function openCommand([program, ...args]) {
  const child = spawn(program, args, { stdio: 'pipe', detached: true });
  await new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new ProgramNotFound(`starting ${program}: ${error.code}`)));
    child.once('spawn', resolve);
  });
  return new OwnServer(child);
}
