// A client of Cordon; index.d.ts says what there is.
export { Client, connect, run, spawn } from './client.js';
export {
  CommandFailed, CordonError, Disconnected, Forbidden, InputClosed, InvalidParams, InvalidRequest, LimitReached,
  NotAdmitted, NotFound, ProgramNotFound, RpcError, ServerEnded, SessionAttached, SystemRefused, TimedOut,
  UnknownMethod,
} from './errors.js';
export { Files, Handle } from './files.js';
export { Layer, Layers } from './layers.js';
export { Process, Result } from './process.js';
export { Session, Sessions } from './sessions.js';
