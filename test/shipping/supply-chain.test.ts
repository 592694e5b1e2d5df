import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { root } from '../files.ts';
import { assertMapped, assertNone } from '../support/assert-lists.ts';
import { parseInstructions } from '../support/image/image-steps.ts';

type Json = { [key: string]: unknown };
type Step = { uses?: string; run?: string; with?: Json };
type Job = { permissions?: Json; steps: Step[] };
type Workflow = { permissions: Json; jobs: Record<string, Job> };

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const folder = '.github/workflows';
const workflows = readdirSync(join(root, folder)).map((name) => ({ ...(parse(read(folder, name)) as Workflow), name }));
const jobs = workflows.flatMap(({ name, permissions, jobs: own }) =>
  Object.entries(own).map(([id, job]) => ({ id: `${name}: ${id}`, permissions, ...job })),
);
const steps = jobs.flatMap((job) => job.steps);

/** Images without a digest, and the reason. */
const unpinnedImages: Record<string, string> = {
  'toolhost:0.1.0': 'is built from this repository; TOOLHOST_IMAGE and image.digest pin a pushed image',
};

/** Actions that pull an image, and the input that names it. */
const pullingActions: Record<string, string> = {
  'docker/setup-qemu-action': 'image',
  'docker/setup-buildx-action': 'driver-opts',
  'docker/build-push-action': 'sbom',
};

/** Returns the images of a Dockerfile: its frontend, and the base images of its stages. */
function findDockerfileImages(text: string): string[] {
  const frontend = /^# syntax=(\S+)/.exec(text)?.[1];
  const stages = new Set<string>();
  const bases = parseInstructions(text)
    .filter(({ keyword }) => keyword === 'FROM')
    .flatMap(({ text: from }) => {
      const [base = '', , stage = ''] = from.split(' ');
      const isStage = stages.has(base);
      stages.add(stage);
      return isStage ? [] : [base];
    });
  return [...(frontend === undefined ? [] : [frontend]), ...bases];
}

/** Returns every `image` value of a document, at any depth. */
function findImages(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === 'image' && typeof value === 'string' ? [value] : findImages(value),
  );
}

describe('the supply chain of a release', () => {
  it('pins every image by its digest, or gives the reason [ship 11]', () => {
    const actionImages = steps.flatMap(({ uses = '', with: inputs = {} }) => {
      const input = pullingActions[uses.split('@')[0] ?? ''];
      return input === undefined ? [] : [String(inputs[input] ?? uses).replace(/^(?:image|generator)=/, '')];
    });
    const commandImages = steps.flatMap(({ run = '' }) =>
      [...run.matchAll(/(?<=\s)(?:[\w.-]+\/)+[\w.-]+:[\w.-]+(?:@\S+)?/g)].map(([image]) => image),
    );
    const compose = ['compose.yaml', 'trial.yaml'].flatMap((file) => findImages(parse(read('deploy/compose', file))));
    const images = [
      ...['Dockerfile', 'deploy/compose/pgbouncer/Dockerfile'].flatMap((file) => findDockerfileImages(read(file))),
      ...compose.map((image) => image.replace(/^\$\{TOOLHOST_IMAGE:-(.*)\}$/, '$1')),
      ...parseAllDocuments(read('deploy/kubernetes/toolhost.yaml')).flatMap((one) => findImages(one.toJS())),
      ...actionImages,
      ...commandImages,
    ];
    // The number proves that the patterns above still find every image.
    assert.equal(images.length, 12, images.join('\n'));
    const floatingImages = new Set(images.filter((image) => !/:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image)));
    assert.deepEqual([...floatingImages], Object.keys(unpinnedImages));
  });

  it('uses the Node.js version of package.json in .nvmrc [ship 11]', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> };
    assert.equal(read('.nvmrc').trim(), devDependencies.node);
  });

  it('hides checkout credentials from later steps in every workflow, and uses no cache in a release [ship 11]', () => {
    const checkouts = steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout@'));
    assert.ok(checkouts.length > 5);
    for (const { with: inputs = {} } of checkouts) assert.equal(inputs['persist-credentials'], false);
    const releaseSteps = jobs.filter(({ id }) => id.startsWith('release.yml')).flatMap((job) => job.steps);
    const setups = releaseSteps.filter(({ uses = '' }) => uses.startsWith('actions/setup-node@'));
    assert.ok(setups.length > 2);
    for (const { with: inputs = {} } of setups)
      assert.deepEqual([inputs.cache, inputs['package-manager-cache']], [undefined, false]);
  });

  it('pins every action by its commit [ship 11]', () => {
    const usedActions = steps.flatMap(({ uses }) => uses ?? []);
    assert.ok(usedActions.length > 10);
    assertNone(usedActions, (action) => !/@[0-9a-f]{40}$/.test(action));
  });

  it('runs code of the package and its dependencies only in jobs without write permissions [ship 11]', () => {
    const hasWritePermission = ({ permissions = {} }: Job) => Object.values(permissions).includes('write');
    const privilegedJobs = jobs.filter(hasWritePermission);
    assertMapped(privilegedJobs, ({ id }) => id, [
      'release.yml: image',
      'release.yml: publish',
      'release.yml: chart',
      'release.yml: site',
      'security.yml: codeql',
    ]);
    const commands = privilegedJobs.flatMap((job) => job.steps.flatMap(({ run = '' }) => run.split('\n')));
    const codeCommands = commands.filter((command) => /\b(?:npm|npx|node|yarn|pnpm|make|bash|sh)\b/.test(command));
    assert.deepEqual(codeCommands, ['npm publish release/*.tgz --provenance --access public --ignore-scripts']);
  });
});
