/** Everything that this package throws. */
export class CordonError extends Error {}

/** The server's answer to a call is an error. */
export class RpcError extends CordonError {
  static NOT_FOUND = -32004;
  static INVALID_REQUEST = -32600;
  static UNKNOWN_METHOD = -32601;
  static INVALID_PARAMS = -32602;
  static INTERNAL = -32603;
  static SESSION_ATTACHED = -32010;

  constructor(code, message, data) {
    super(`${message} (${code})`);
    this.code = code;
    this.text = message;
    this.data = data;
  }
}

/** The connection is gone. A call that was on its way may have been carried out or not. */
export class Disconnected extends CordonError {}
