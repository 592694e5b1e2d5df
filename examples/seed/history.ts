import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Role } from '@toolhost/credentials/credential';
import { newId } from '@toolhost/credentials/ids';
import { type Input, type Output, operations } from '@toolhost/server/operations';
import { localWorkspace } from '../../apps/server/src/config.ts';
import { exampleSlug } from '../../apps/server/src/example-server.ts';
import type { Actor } from '../../apps/server/src/operations/operation.ts';
import { type Runner, runOperation } from '../../apps/server/src/operations/run-operation.ts';
import { insertSession } from '../../apps/server/src/store/people/sessions.ts';
import { saveMember, saveUser } from '../../apps/server/src/store/people/users.ts';
import { findServer } from '../../apps/server/src/store/servers/servers.ts';
import { firstVersion, servers } from './servers.ts';

const dayMs = 24 * 60 * 60_000;
const exampleFile = join(import.meta.dirname, '..', 'projects', 'server.json');

export type People = Record<'ada' | 'bruno' | 'chiara' | 'dmitri', Actor>;
/** Keys for the calls, by purpose. */
export type SeedKeys = Record<'assistant' | 'nightly' | 'warehouse', string>;
export type History = { run: Run; people: People; keys: SeedKeys };

/** Runs operations as if at a given time, in epoch ms. `now` is the time of seeding. */
export type SeedClock = { runner: Runner; now: number; setTime(at: number): void };

type OperationName = keyof typeof operations;
/** Runs an operation as one of the people. */
export type Run = <Name extends OperationName>(actor: Actor, name: Name, input: Input<Name>) => Promise<Output<Name>>;

/**
 * Seeds the activity of four people in the last month: servers with versions and secrets, keys, limits, invitations, and
 * revocations. Every step is an operation at its own time, so that the audit log and the versions agree.
 */
export async function makeHistory(clock: SeedClock): Promise<History> {
  const run: Run = (actor, name, input) => {
    const { runner } = clock;
    return runOperation(runner, operations[name], {
      actor,
      input,
      requestId: newId(runner.deps.random, 'req'),
    }) as Promise<Output<typeof name>>;
  };
  const goToDaysAgo = (days: number) => clock.setTime(workingTime(clock.now, days));
  goToDaysAgo(29.8);
  const people = await signInPeople(clock);
  const example = await findServer(clock.runner.db, localWorkspace.id, exampleSlug);
  if (!example) await create(run, people.ada, JSON.parse(readFileSync(exampleFile, 'utf8')) as object);
  await setUpServers(run, people, goToDaysAgo);
  const keys = await makeKeys(run, people, goToDaysAgo);
  await seedLastWeeks(run, people, goToDaysAgo);
  clock.setTime(clock.now - 2 * 60 * 60_000);
  await run(people.bruno, 'captureCalls', { slug: 'invoices', hours: 24 });
  clock.setTime(clock.now);
  return { run, people, keys };
}

/** Returns a time some days before `now`, within working hours: 29.9 is at the start of that day, 29.1 at its end. */
function workingTime(now: number, days: number): number {
  const midnight = Math.floor(now / dayMs) * dayMs - Math.floor(days) * dayMs;
  return midnight + Math.round((8 + 9 * (1 - (days % 1))) * 60 * 60_000);
}

async function signInPeople(clock: SeedClock): Promise<People> {
  const { db, deps } = clock.runner;
  let joinedCount = 0;
  const join = async (name: string, role: Role): Promise<Actor> => {
    const subject = (name.split(' ')[0] ?? name).toLowerCase();
    joinedCount += 1;
    const at = deps.now() + joinedCount * 60_000;
    const person = { issuer: 'https://login.example.com', subject, email: `${subject}@example.com`, name };
    const { id } = await saveUser(db, { id: newId(deps.random, 'usr'), ...person, at });
    const workspaceId = localWorkspace.id;
    await saveMember(db, { workspaceId, userId: id, role, at });
    // The cookie is discarded. The session expires after seeding, and maintenance deletes it.
    const sessionHash = newId(deps.random, 'seed');
    await insertSession(db, { hash: sessionHash, userId: id, workspaceId, at, expiresAt: clock.now });
    return { kind: 'user', id, workspaceId, scopes: ['manage', 'call'], servers: undefined, role, sessionHash };
  };
  return {
    ada: await join('Ada Lindqvist', 'owner'),
    bruno: await join('Bruno Costa', 'editor'),
    chiara: await join('Chiara Moretti', 'editor'),
    dmitri: await join('Dmitri Petrov', 'editor'),
  };
}

type Ago = (days: number) => void;

async function setUpServers(run: Run, { ada, bruno, dmitri }: People, goToDaysAgo: Ago): Promise<void> {
  goToDaysAgo(29.5);
  await create(run, bruno, servers.weather);
  goToDaysAgo(29.3);
  await create(run, ada, firstVersion(servers.invoices, 2));
  await run(ada, 'setSecret', { slug: 'invoices', name: 'INVOICES_TOKEN', value: 'a-token-of-the-seed' });
  goToDaysAgo(29.2);
  await create(run, dmitri, firstVersion(servers.helpdesk, 1));
  goToDaysAgo(29.1);
  await create(run, bruno, servers.warehouse);
  await run(bruno, 'setSecret', { slug: 'warehouse', name: 'WAREHOUSE_KEY', value: 'a-key-of-the-seed' });
  goToDaysAgo(28.9);
  await create(run, dmitri, { ...servers.weather, slug: 'weather-trial', name: 'Weather, a trial' });
  goToDaysAgo(28.4);
  await replace(run, dmitri, servers.helpdesk);
  await replace(run, ada, firstVersion(servers.invoices, 3));
  goToDaysAgo(21.1);
  await replace(run, bruno, servers.invoices);
}

export function create(run: Run, actor: Actor, config: object) {
  return run(actor, 'createMcpServer', config as Input<'createMcpServer'>);
}

export function replace(run: Run, actor: Actor, config: object) {
  return run(actor, 'replaceMcpServer', config as Input<'replaceMcpServer'>);
}

async function makeKeys(run: Run, { ada, bruno, dmitri }: People, goToDaysAgo: Ago): Promise<SeedKeys> {
  goToDaysAgo(29);
  const assistant = await run(ada, 'createApiKey', { name: 'Assistant in the chat', scopes: ['call'] });
  const nightly = await run(dmitri, 'createApiKey', {
    name: 'Nightly reports',
    scopes: ['call'],
    servers: ['invoices'],
  });
  const warehouse = await run(bruno, 'createApiKey', {
    name: 'Packing table',
    scopes: ['call'],
    servers: ['warehouse', 'weather'],
    expires_in: (29 + 40) * 24 * 60 * 60,
  });
  await run(bruno, 'createApiKey', { name: 'Backup of configurations', scopes: ['manage:read'] });
  const laptop = await run(dmitri, 'createApiKey', { name: 'Laptop of Dmitri', scopes: ['manage', 'call'] });
  goToDaysAgo(26);
  await run(ada, 'createApiKey', { name: 'Workshop in spring', scopes: ['call'], expires_in: 2 * 24 * 60 * 60 });
  goToDaysAgo(12.4);
  await run(ada, 'revokeApiKey', { id: laptop.id });
  return { assistant: assistant.id, nightly: nightly.id, warehouse: warehouse.id };
}

async function seedLastWeeks(run: Run, { ada, bruno, chiara, dmitri }: People, goToDaysAgo: Ago): Promise<void> {
  goToDaysAgo(12.1);
  await run(ada, 'removeMember', { id: dmitri.id, revoke_access: false });
  await run(ada, 'deleteMcpServer', { slug: 'weather-trial' });
  goToDaysAgo(9.2);
  await run(bruno, 'setServerLimits', { slug: 'weather', calls_per_second: 5 });
  goToDaysAgo(6.4);
  await run(ada, 'updateMember', { id: chiara.id, role: 'viewer', revoke_access: false });
  goToDaysAgo(2.2);
  await run(ada, 'inviteMember', { email: 'elif@example.com', role: 'editor' });
}
