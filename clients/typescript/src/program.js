// Where the program `cordon` is, for a server of our own.
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { ProgramNotFound } from './errors.js';

const OWN = fileURLToPath(new URL('../program/bin/cordon', import.meta.url)); // of the npm package

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** That of this package, else the first on the PATH; what lies in the current folder may be a command's work. */
export function find() {
  const folders = (process.env.PATH ?? '/usr/bin:/bin').split(path.delimiter).filter((folder) => folder.startsWith('/'));
  const found = [OWN, ...folders.map((folder) => path.join(folder, 'cordon'))].find(isProgram);
  if (found) return found;
  throw new ProgramNotFound('the program `cordon` is not in this package, nor in an absolute folder of the PATH',
    "install Cordon, or say where it is: spawn({ argv: ['/path/to/cordon', 'serve', '--listen', 'stdio'] })");
}

/** The command of a server on standard input and output. */
export const serve = () => [find(), 'serve', '--listen', 'stdio'];
