import { createInterface } from 'node:readline';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { ignored } from '../store/stores.ts';

/**
 * A separate process that opens the databases named on its standard input, one JSON line each, and prints the results.
 * Each is kept open until the next line.
 */
let held: Database | undefined;
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  await held?.close();
  held = undefined;
  try {
    held = await openDatabase({ ...JSON.parse(line), now: Date.now, ...ignored });
    await held.db.selectFrom('servers').selectAll().execute();
    process.stdout.write('opened\n');
  } catch (error) {
    process.stdout.write(`${String(error)}\n`);
  }
}
await held?.close();
