// A client of `cordon serve`, and of every other server of the exec-server protocol; README.md shows
// how it is used, and index.d.ts says what there is.
export { Client, connect, spawn } from './client.js';
export { CordonError, Disconnected, RpcError } from './errors.js';
export { Files, Handle } from './files.js';
export { Process } from './process.js';
export { sandbox } from './sandbox.js';
export { Sessions } from './sessions.js';
