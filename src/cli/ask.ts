import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { AppError } from '../errors.ts';
import { note } from './print.ts';

/** Input and output for prompts. Prompts go to standard error, because standard output is for results. */
export type Terminal = { input: Readable; output: Writable };

/** Prompts for a line of input. @throws AppError if the user cancels */
export async function ask(question: string, { input, output }: Terminal): Promise<string> {
  output.write(question);
  return line(createInterface({ input, terminal: false }));
}

/** Prompts for a line of input without echoing it. @throws AppError if the user cancels */
export async function askHidden(question: string, { input, output }: Terminal): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // Created before the prompt is shown, because it turns off the terminal's echo.
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
    reader.once('close', () => reject(new AppError('invalid', 'no input; nothing was changed')));
  });
}

/**
 * Returns if `--yes` is set or the user types `word` at the terminal. `what` completes the sentence "This would …".
 * @throws AppError if the user does not confirm, or standard input is not a terminal
 */
export async function confirm(what: string, word: string, { yes }: { yes?: true }): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new AppError('invalid', `this would ${what}; nothing was changed. Add --yes to confirm`);
  note(`This would ${what}.`);
  const typed = await ask(`Type ${word} to confirm: `, { input: process.stdin, output: process.stderr });
  if (typed.trim() !== word) throw new AppError('invalid', 'not confirmed; nothing was changed');
}
