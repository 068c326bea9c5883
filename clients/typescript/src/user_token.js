// The token that this user's own servers at loopback addresses know as well (cordon-serve(1),
// --ws-auth). It is never sent, because anybody may have taken the port: what is sent is signed with
// it, for one address and half a minute, and the server has to prove that it knows the token, too.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { CordonError } from './errors.js';

const LIFETIME_S = 30;
const SIZE_MAX = 4096;
const REMEDY = 'remove it, and the next server makes a new one';

function directory() {
  const { CORDON_HOME: named, HOME: home } = process.env;
  if (named) return named;
  if (home?.startsWith('/')) return path.join(home, '.config/cordon');
  try {
    return path.join(os.userInfo().homedir, '.config/cordon');
  } catch {
    return undefined; // a user without an account
  }
}

/** What `use` makes of the file or directory, which has to be the user's alone; undefined: it is missing. */
function opened(place, flags, use) {
  let fd;
  try {
    fd = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | flags);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    if (error.code === 'EACCES')
      throw new CordonError(`${place}: EACCES, as it is to every command in a sandbox (token: '' does without)`);
    throw new CordonError(`${place}: ${error.code}; links are not followed: ${REMEDY}`);
  }
  try {
    const info = fstatSync(fd);
    if (info.uid !== process.geteuid() || info.mode & 0o077)
      throw new CordonError(`${place} has to belong to you and be open to nobody else: ${REMEDY}`);
    return use(fd, info);
  } finally {
    closeSync(fd);
  }
}

function readToken(fd, info, place) {
  const bytes = Buffer.alloc(SIZE_MAX);
  if (!info.isFile()) throw new CordonError(`${place} is no regular file: ${REMEDY}`);
  const [token] = bytes.toString('latin1', 0, readSync(fd, bytes, 0, SIZE_MAX, 0)).trim().split(/\s/);
  if (!token) throw new CordonError(`${place} is empty: ${REMEDY}`);
  return token;
}

/** undefined when there is none. */
export function findUserToken() {
  const config = process.geteuid ? directory() : undefined; // not where there are no users
  if (config === undefined) return undefined;
  const folder = path.join(config, 'private');
  const file = path.join(folder, 'ws-token');
  return opened(folder, constants.O_DIRECTORY, () => opened(file,
    constants.O_NONBLOCK | constants.O_NOCTTY, (fd, info) => readToken(fd, info, file)));
}

/** How a server at the other end calls itself; undefined when that is not a loopback address. */
export function addressOf(socket) {
  const { remoteAddress: host, remotePort: port } = socket;
  if (net.isIPv4(host ?? '') && host.startsWith('127.')) return `ws://${host}:${port}`;
  return host === '::1' ? `ws://[::1]:${port}` : undefined;
}

const hmac = (token, text) => createHmac('sha256', token).update(text).digest();

/** A JSON Web Token for the server at this address. */
export function signedBy(token, address) {
  const claims = { aud: address, exp: Math.floor(Date.now() / 1000) + LIFETIME_S };
  const text = [{ alg: 'HS256', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${text}.${hmac(token, text).toString('base64url')}`;
}

/** Of the server that was asked with this Sec-WebSocket-Key. */
export function isProof(token, key, proof) {
  const right = hmac(token, `cordon-proof ${key}`);
  const given = Buffer.from(proof ?? '', 'base64');
  return given.length === right.length && timingSafeEqual(given, right);
}
