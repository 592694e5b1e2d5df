import type { Command } from 'commander';
import type { Output } from '../../operations/index.ts';
import type { ConnectedClient } from '../connection/rest-client.ts';
import { painter } from '../print/print.ts';
import type { ReadRecords } from './read-records.ts';
import { addRecordOptions, type RecordOptions, runRecords } from './record-commands.ts';

type Event = Output<'listAuditEvents'>['events'][number];

export function addAudit(program: Command): void {
  addRecordOptions(program.command('audit'), 'changes')
    .description('list who changed what in the workspace, newest first, or follow it')
    .addHelpText(
      'after',
      `
With --json a list is one object, and with --follow each change is a line.

Examples:
  toolhost audit --since 1d
  toolhost audit --follow --json`,
    )
    .action((options: RecordOptions) =>
      runRecords({ name: 'events', read: pagesOf, lines, none: 'No changes were found.' }, options),
    );
}

/** The operation has no filter by time, so a page that reaches further back is the last one. */
function pagesOf(client: ConnectedClient): ReadRecords<Event> {
  return async ({ since, ...page }, allowance) => {
    const { events, next_cursor } = await client.run('listAuditEvents', page, allowance);
    const records = since === undefined ? events : events.filter(({ at }) => Date.parse(at) >= since);
    return { records, next: records.length < events.length ? undefined : next_cursor };
  };
}

function lines(events: readonly Event[]): string[] {
  const paint = painter(process.stdout, process.env);
  return events.map(({ at, operation, target, actor_kind, actor_id, actor_name, detail }) => {
    const actor = actor_name === undefined ? actor_id : `${actor_name} (${actor_id})`;
    const more = Object.keys(detail).length === 0 ? '' : paint(JSON.stringify(detail), 'dim');
    return [paint(at, 'dim'), operation.padEnd(18), target ?? '-', `by ${actor_kind} ${actor}`, more]
      .filter((text) => text !== '')
      .join('  ');
  });
}
