import { createInterface } from 'node:readline';
import { type Database, openDatabase } from '../../../apps/server/src/store/database.ts';
import { ignoredReports } from '../store/default-options.ts';

/**
 * Opens the databases named on standard input, one JSON line each, and prints the results. Runs as a separate process.
 * Each database stays open until the next line.
 */
let currentDatabase: Database | undefined;
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  await currentDatabase?.close();
  currentDatabase = undefined;
  process.stdout.write(`${await open(line)}\n`);
}
await currentDatabase?.close();

async function open(line: string): Promise<string> {
  for (;;) {
    try {
      currentDatabase = await openDatabase({ ...JSON.parse(line), now: Date.now, ...ignoredReports });
      await currentDatabase.db.selectFrom('servers').selectAll().execute();
      return 'opened';
    } catch (error) {
      // On a busy machine, another process may hold the lock for longer than this one waits. Like an operator, this one
      // retries.
      if (!/is locked by another program/.test(String(error))) return String(error);
      await currentDatabase?.close();
      currentDatabase = undefined;
    }
  }
}
