import { createInterface } from 'node:readline';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { ignored } from '../store/usual-options.ts';

/**
 * A separate process that opens the databases named on its standard input, one JSON line each, and prints the results.
 * Each is kept open until the next line.
 */
let held: Database | undefined;
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  await held?.close();
  held = undefined;
  process.stdout.write(`${await open(line)}\n`);
}
await held?.close();

async function open(line: string): Promise<string> {
  for (;;) {
    try {
      held = await openDatabase({ ...JSON.parse(line), now: Date.now, ...ignored });
      await held.db.selectFrom('servers').selectAll().execute();
      return 'opened';
    } catch (error) {
      // On a busy machine another one takes longer than this one waits; like an operator, this starts again.
      if (!/is locked by another program/.test(String(error))) return String(error);
      await held?.close();
      held = undefined;
    }
  }
}
