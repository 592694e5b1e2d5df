import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { AppError } from '@toolhost/errors/errors';
import { printMessage } from './print.ts';

/** Input and output for prompts. Prompts go to standard error, because standard output is for results. */
export type Terminal = { input: Readable; output: Writable };

/** Prompts for a line of input. @throws AppError if the user cancels */
export async function promptLine(question: string, { input, output }: Terminal): Promise<string> {
  output.write(question);
  return readLine(createInterface({ input, terminal: false }));
}

/** Prompts for a line of input without echoing it. @throws AppError if the user cancels */
export async function promptHidden(question: string, { input, output }: Terminal): Promise<string> {
  const discardingOutput = new Writable({ write: (_chunk, _encoding, done) => done() });
  // The reader turns off the terminal's echo, so it is created before the prompt is shown.
  const reader = createInterface({ input, output: discardingOutput, terminal: true });
  output.write(question);
  try {
    return await readLine(reader);
  } finally {
    output.write('\n');
  }
}

function readLine(reader: ReturnType<typeof createInterface>): Promise<string> {
  return new Promise((resolve, reject) => {
    reader.once('line', (answer) => {
      resolve(answer);
      reader.close();
    });
    reader.once('SIGINT', () => reader.close());
    reader.once('close', () => reject(new AppError('invalid', 'no input; nothing was changed')));
  });
}

/**
 * Asks the user to type `confirmationWord`, unless `--yes` is set. `action` completes the sentence "This would …".
 * @throws AppError if the user does not confirm, or standard input is not a terminal
 */
export async function confirmAction(action: string, confirmationWord: string, { yes }: { yes?: true }): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new AppError('invalid', `this would ${action}; nothing was changed. Add --yes to confirm`);
  printMessage(`This would ${action}.`);
  const typed = await promptLine(`Type ${confirmationWord} to confirm: `, {
    input: process.stdin,
    output: process.stderr,
  });
  if (typed.trim() !== confirmationWord) throw new AppError('invalid', 'not confirmed; nothing was changed');
}
