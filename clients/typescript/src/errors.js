// What goes wrong, each kind a class of its own; index.d.ts says what they are.
const REMEDIES = {
  'input-full': 'read its output, or write again when it has read its input',
  'max-processes': 'end some, or start the server with a larger --max-processes',
  'max-connections': 'close some, or start the server with a larger --max-connections',
  'max-calls': 'wait for answers before calling more',
  'max-open-files': 'close some handles',
  'max-http-requests': 'wait for some to end',
  stopping: 'connect to another server; this one is being stopped',
  descriptors: 'start the server with a larger limit of open files (ulimit -n)',
  'disk-full': 'make room on the disk',
  'file-too-large': 'write less, or give the server a larger limit (ulimit -f)',
  memory: 'give the machine more memory, or run less at once',
  'system-processes': 'raise the limit of processes (ulimit -u), or run less at once',
};

/** What a command or a server wrote, for a person's terminal: nothing in it controls that. */
const printable = (text) => text.replace(/[^\P{C}\n]/gu, '?');

export class CordonError extends Error {
  constructor(message, remedy) {
    super(printable(remedy ? `${message}: ${remedy}` : message));
    this.name = new.target.name;
    this.remedy = remedy;
  }
}

export class ProgramNotFound extends CordonError {}
export class NotAdmitted extends CordonError {}
export class Disconnected extends CordonError {}
export class InputClosed extends CordonError {}

export class ServerEnded extends Disconnected {
  constructor(status, signal, log) {
    const how = signal ? ` by ${signal}` : ` with status ${status}`;
    super(`the server ended${how}${log ? `, and said: ${log}` : ''}`);
    this.status = status;
    this.signal = signal;
    this.log = log;
  }
}

export class TimedOut extends CordonError {
  constructor(message, result) {
    super(message);
    this.result = result;
  }
}

export class CommandFailed extends CordonError {
  constructor(result) {
    const { exitCode, signal, denials } = result.exit;
    const last = result.stderr.toString().trim().split('\n').at(-1).slice(-200);
    super(`the command ${signal ? `was ended by ${signal}` : `ended with ${exitCode}`}${last ? ` (${last})` : ''}`,
      denials.find(({ aside }) => !aside)?.remedy);
    this.result = result;
    this.denials = denials;
  }
}

export class RpcError extends CordonError {
  static NOT_FOUND = -32004;
  static INVALID_REQUEST = -32600;
  static UNKNOWN_METHOD = -32601;
  static INVALID_PARAMS = -32602;
  static INTERNAL = -32603;
  static SESSION_ATTACHED = -32010;

  constructor(code, message, data) {
    super(`${message} (${code})`, Object.hasOwn(REMEDIES, data?.reason) ? REMEDIES[data.reason] : undefined);
    this.code = code;
    this.text = data?.text ?? message;
    this.reason = data?.reason;
    this.data = data;
  }
}

export class NotFound extends RpcError {}
export class InvalidRequest extends RpcError {}
export class Forbidden extends InvalidRequest {}
export class LimitReached extends RpcError {}
export class UnknownMethod extends RpcError {}
export class InvalidParams extends RpcError {}
export class SystemRefused extends RpcError {}
export class SessionAttached extends RpcError {}

const BY_CODE = new Map([
  [RpcError.NOT_FOUND, NotFound], [RpcError.INVALID_REQUEST, InvalidRequest],
  [RpcError.UNKNOWN_METHOD, UnknownMethod], [RpcError.INVALID_PARAMS, InvalidParams],
  [RpcError.INTERNAL, SystemRefused], [RpcError.SESSION_ATTACHED, SessionAttached],
]);

/** In the class of its own. */
export function rpcError({ code, message, data }) {
  if (data?.reason === 'forbidden') return new Forbidden(code, message, data);
  if (Object.hasOwn(REMEDIES, data?.reason)) return new LimitReached(code, message, data);
  return new (BY_CODE.get(code) ?? RpcError)(code, message, data);
}
