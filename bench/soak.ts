/**
 * Runs minutes of load on a thousand servers, alternately without and with a workspace that attacks the others. Measures
 * memory growth, the effect on the other workspaces, and the release of sockets.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from './load.ts';
import { type Child, cores, countOpenSockets, getCpuMs, getResidentMb, node, startChild } from './processes.ts';
import type { Size } from './sizes.ts';
import {
  type AttackLoad,
  configurationLoad,
  invalidBearerLoad,
  largeResponseTools,
  rejectedRequestLoad,
  reportLoad,
} from './soak-attacks.ts';
import type { PhaseResult, SoakCall, SoakJob } from './soak-load.ts';
import { formatSoakReport, type MemorySample, type Phase } from './soak-report.ts';
import { createKey, createServer, makeEnvironment, mcpTarget, ready, toolhostPath } from './toolhost-process.ts';

const honestPerSecond = 300;
const directPerSecond = 50;
/** Rate of attacking tool calls, above the default limit of 60 per second for each of the four servers. */
const attacksPerSecond = 500;
const attackServerCount = 4;
/** Number of honest servers that unverified callers attack with invented bearer tokens. */
const victimServerCount = 5;
const sampleMs = 1000;
const mebibyte = 1024 * 1024;

/**
 * Shares of the attacking tool calls, in percent. Almost half of them are slow but succeed, so that the circuit breaker
 * does not simply open and spare the service the other calls.
 */
const attackTools: [name: string, share: number][] = [
  ['slow', 40],
  ['endless', 4],
  ['deep-json', 4],
  ['bad-json', 4],
  ['silence', 14],
  ['drip-body', 8],
  ['drip-headers', 6],
  ['reset', 5],
  ['garbage', 4],
  ['half-close', 3],
  ['huge-headers', 2],
  ['interim-flood', 1],
  ['tiny-chunks', 1],
  ['gzip-bomb', 2],
  ['br-bomb', 2],
];

/** Management key of each workspace. The last workspace is the adversarial one. */
type Keys = Map<string, string>;

/** Inserts workspaces directly into the database, because the service creates them only when people sign in. */
async function insertWorkspaces(dataDir: string, env: Record<string, string>, count: number): Promise<Keys> {
  const workspaces = Array.from({ length: count }, (_, n) => `workspace-${n}`);
  await createKey(env);
  const database = new DatabaseSync(join(dataDir, 'toolhost.sqlite'));
  const insert = database.prepare('insert into workspaces (id, name, created_at) values (?, ?, ?)');
  for (const id of workspaces) insert.run(id, id, Date.now());
  database.close();
  const keys: Keys = new Map();
  for (const id of workspaces) keys.set(id, await createKey(env, id));
  return keys;
}

function honestConfig(slug: string, upstream: string, isKeyed: boolean): object {
  const base = isKeyed ? upstream : `${upstream}/guarded`;
  const get = (name: string, size: string) => ({
    name,
    description: `Get the items of a project as ${size} of JSON, oldest first.`,
    method: 'GET',
    url: `${base}/${size}/items/:id`,
    input_schema: { id: { type: 'string' } },
  });
  const authentication = { type: 'Bearer', ...(isKeyed && { token: 'token-of-the-upstream' }) };
  return { name: slug, slug, authentication, tools: [get('small', '1k'), get('large', '20k')] };
}

function adversarialConfig(slug: string, upstreams: { honest: string; adversarial: string }): object {
  const tools = attackTools.map(([name]) => ({
    name,
    description: `The upstream responds with ${name}.`,
    method: 'GET',
    url: `${upstreams.adversarial}/${name}`,
    timeout_ms: 2000,
    response_limit_bytes: mebibyte,
  }));
  const large = largeResponseTools(upstreams.honest);
  return { name: slug, slug, authentication: { type: 'Bearer', token: 'x' }, tools: [...tools, ...large] };
}

async function createCallerKey(url: string, manager: string, name: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/keys`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${manager}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name, scopes: ['call'] }),
  });
  return ((await response.json()) as { key: string }).key;
}

type Callers = {
  honest: Target[];
  /** Honest callers with their own token. */
  tokenCallers: Target[];
  /** Calls of the adversarial workspace to a misbehaving upstream, and to an upstream with large responses. */
  toolCalls: Target[];
  largeCalls: Target[];
};

/** Creates servers and callers sequentially, half of them with an API key and half with the caller's own token. */
async function createServers(
  service: Child,
  keys: Keys,
  upstreams: { honest: string; adversarial: string },
  serversPerWorkspace: number,
): Promise<Callers> {
  const adversarialWorkspace = [...keys.keys()].at(-1);
  const callers: Callers = { honest: [], tokenCallers: [], toolCalls: [], largeCalls: [] };
  const makeCall = (slug: string, bearer: string, tool: string, args = {}): Target =>
    mcpTarget({ child: service, url: service.ready, key: '' }, slug, bearer, 'tools/call', {
      name: tool,
      arguments: args,
    });
  for (const [workspace, manager] of keys) {
    for (let n = 0; n < serversPerWorkspace; n++) {
      const slug = `${workspace}-${n}`;
      const isAdversarial = workspace === adversarialWorkspace;
      const isKeyed = isAdversarial || n % 2 === 0;
      const config = isAdversarial ? adversarialConfig(slug, upstreams) : honestConfig(slug, upstreams.honest, isKeyed);
      await createServer({ url: service.ready, key: manager }, config);
      const bearer = isKeyed ? await createCallerKey(service.ready, manager, slug) : `token-of-caller-${slug}`;
      if (!isAdversarial) {
        const call = makeCall(slug, bearer, n % 10 === 9 ? 'large' : 'small', { id: '7' });
        callers.honest.push(call);
        if (!isKeyed) callers.tokenCallers.push(call);
      } else if (n < attackServerCount) {
        for (const [tool, share] of attackTools)
          for (let copy = 0; copy < share; copy++) callers.toolCalls.push(makeCall(slug, bearer, tool));
        for (const tool of ['large_fields', 'large_transform', 'large_schema'])
          callers.largeCalls.push(makeCall(slug, bearer, tool));
      }
    }
  }
  return { ...callers, toolCalls: shuffle(callers.toolCalls) };
}

/** Returns all attacks of the adversarial workspace and of unverified callers. */
function buildAttackLoads(service: Child, keys: Keys, callers: Callers, upstream: string): AttackLoad[] {
  const at = { url: service.ready, key: [...keys.values()].at(-1) ?? '' };
  const victims = callers.tokenCallers.slice(0, victimServerCount);
  return [
    { name: 'tool calls', perSecond: attacksPerSecond, targets: callers.toolCalls },
    { name: 'calls with large responses', perSecond: 3, targets: callers.largeCalls },
    configurationLoad(at, upstream),
    reportLoad(at),
    invalidBearerLoad(victims),
    ...victims.slice(0, 1).map((victim) => rejectedRequestLoad(victim, at)),
  ];
}

function toSoakCall({ url, headers, body }: AttackLoad['targets'][number]): SoakCall {
  const { pathname, search } = new URL(url);
  const path = pathname + search;
  if (body === undefined) return { path, headers };
  return { path, headers: { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }, body };
}

/** Reorders items deterministically and spreads every kind evenly. */
function shuffle<T>(items: readonly T[]): T[] {
  const step = 389;
  return items.map((_, n) => items[(n * step) % items.length] as T);
}

/** Runs the phases and samples the service's memory every second. */
async function runLoad(folder: string, service: Child, job: SoakJob) {
  const file = join(folder, 'soak.json');
  writeFileSync(file, JSON.stringify(job));
  const results: Phase[] = [];
  const samples: MemorySample[] = [];
  const load = await startChild([node, join(import.meta.dirname, 'soak-load.ts'), file], {
    core: cores.load,
    ready: /^(ready)$/m,
  });
  const startedAt = performance.now();
  const sampling = setInterval(() => {
    samples.push({ minute: (performance.now() - startedAt) / 60_000, residentMb: getResidentMb(service.pid) });
  }, sampleMs);
  let maxSockets = 0;
  let previous = { at: startedAt, cpu: getCpuMs(service.pid) };
  await new Promise<void>((resolve, reject) => {
    load.onLine((line) => {
      if (line === undefined) reject(new Error(`The load generator exited early: ${load.stderr()}`));
      if (!line?.startsWith('phase ')) return;
      const now = { at: performance.now(), cpu: getCpuMs(service.pid) };
      const busyCores = (now.cpu - previous.cpu) / (now.at - previous.at);
      previous = now;
      results.push({ ...(JSON.parse(line.slice('phase '.length)) as PhaseResult), busyCores });
      maxSockets = Math.max(maxSockets, countOpenSockets(service.pid));
      console.log(`phase ${results.length} of ${job.phases.length}: ${line.slice('phase '.length)}`);
      if (results.length === job.phases.length) resolve();
    });
  });
  clearInterval(sampling);
  await load.stop();
  return { results, samples, mostSockets: maxSockets };
}

/** Returns the report as Markdown. */
export async function runSoak(folder: string, size: Size['soak']): Promise<string> {
  const { minutes, serversPerWorkspace, phaseSeconds, coolDownMs } = size;
  if (!(minutes > 0)) throw new Error('--soak requires a positive number of minutes');
  const script = (name: string) => [node, join(import.meta.dirname, name)];
  const options = { core: cores.load, ready: /^ready (\S+)$/m };
  const honestUpstream = await startChild(script('upstream.ts'), options);
  const adversarialUpstream = await startChild(script('hostile.ts'), options);
  const dataDir = join(folder, 'data');
  const { CALLS_PER_SECOND, CONCURRENT_CALLS, CONCURRENT_CALLS_PER_KEY, ...unlimited } = makeEnvironment({
    dataDir,
    upstream: honestUpstream.ready,
  });
  const env = {
    ...unlimited,
    EGRESS_ALLOW: [honestUpstream, adversarialUpstream].map(({ ready }) => new URL(ready).host).join(','),
  };
  const keys = await insertWorkspaces(dataDir, env, size.workspaces);
  const service = await startChild([toolhostPath, 'serve'], { core: cores.service, env, ready });
  const callers = await createServers(
    service,
    keys,
    { honest: honestUpstream.ready, adversarial: adversarialUpstream.ready },
    serversPerWorkspace,
  );
  const loads = buildAttackLoads(service, keys, callers, honestUpstream.ready);
  const before = { residentMb: getResidentMb(service.pid), sockets: countOpenSockets(service.pid) };
  const pairs = Math.max(1, Math.round((minutes * 60) / (2 * phaseSeconds)));
  // The first phase fills caches and pools and compiles servers. It does not count.
  const phases = Array.from({ length: 2 * pairs + 1 }, (_, n) => ({
    isAttack: n > 0 && n % 2 === 0,
    seconds: phaseSeconds,
  }));
  const job: SoakJob = {
    port: Number(new URL(service.ready).port),
    honest: callers.honest.map(toSoakCall),
    attacks: loads.map(({ name, perSecond, targets }) => ({ name, perSecond, calls: targets.map(toSoakCall) })),
    honestPerSecond,
    direct: { port: Number(new URL(honestUpstream.ready).port), perSecond: directPerSecond, path: '/1k/items/7' },
    phases,
  };
  const { results, samples, mostSockets: maxSockets } = await runLoad(folder, service, job);
  await sleep(coolDownMs);
  const after = { residentMb: getResidentMb(service.pid), sockets: countOpenSockets(service.pid) };
  const metrics = await (await fetch(`${service.ready}/metrics`)).text();
  const alive = await fetch(`${service.ready}/readyz`);
  return formatSoakReport({
    minutes,
    workspaces: keys.size,
    servers: keys.size * serversPerWorkspace,
    callers: callers.honest.length + serversPerWorkspace,
    honestPerSecond,
    attackLoads: loads.map(({ name, perSecond }) => `${perSecond} ${name}`),
    attackTools: attackTools.map(([name, share]) => `${name} ${share}%`),
    results: results.slice(1),
    samples,
    before,
    maxSockets,
    after,
    outboundAfter: metrics.match(/^toolhost_outbound_\S+ \S+$/gm) ?? [],
    isReady: alive.status === 200,
    complaints: service.stderr().match(/call records were dropped|out of memory|unexpected error/g)?.length ?? 0,
  });
}
