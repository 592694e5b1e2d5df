import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { AppError } from '../errors.ts';
import { note } from './print.ts';

/** Input and output for questions. Questions go to standard error, because standard output is for results. */
export type Terminal = { input: Readable; output: Writable };

/** Reads a line from the person. @throws AppError when they cancel */
export async function ask(question: string, { input, output }: Terminal): Promise<string> {
  output.write(question);
  return line(createInterface({ input, terminal: false }));
}

/** The same without echo. */
export async function askHidden(question: string, { input, output }: Terminal): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // Created before the question is shown, because it turns off the echo of the terminal.
  const reader = createInterface({ input, output: nowhere, terminal: true });
  output.write(question);
  try {
    return await line(reader);
  } finally {
    output.write('\n');
  }
}

function line(reader: ReturnType<typeof createInterface>): Promise<string> {
  return new Promise((resolve, reject) => {
    reader.once('line', (text) => {
      resolve(text);
      reader.close();
    });
    reader.once('SIGINT', () => reader.close());
    reader.once('close', () => reject(new AppError('invalid', 'nothing was entered, so nothing was changed')));
  });
}

/**
 * Goes on when `--yes` was given, or the person at the terminal types `word`. `what` completes "this would …".
 * @throws AppError when it is not confirmed, or nobody can be asked
 */
export async function confirm(what: string, word: string, { yes }: { yes?: true }): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new AppError('invalid', `this would ${what}; nothing was changed; add --yes to allow it`);
  note(`This would ${what}.`);
  const typed = await ask(`Type ${word} to confirm: `, { input: process.stdin, output: process.stderr });
  if (typed.trim() !== word) throw new AppError('invalid', 'not confirmed; nothing was changed');
}
