import { maxNamedCredentials, noCredential, signatureHeaders } from '@toolhost/tool-config/authentication';
import { foldHeaderName, foldName, toOwnedNames } from '@toolhost/tool-config/http/parameter-names';
import type { ApiDescription, ApiOperation, ApiRequirement, ApiScheme } from '../model.ts';
import type { Question } from '../plan-outline.ts';
import { type CredentialNames, quoteShort } from '../tools/input-arguments.ts';
import { toPlainText } from '../tools/texts.ts';
import { type AuthenticationSource, buildAuthentication, type CredentialFields } from './authentication-fields.ts';
import type { ImportChoices } from './choices.ts';
import { isSameAddress } from './server-address.ts';

/**
 * Credential of an operation: the name that its tool references (undefined for the server's credential), or the reason
 * why no credential is sufficient.
 */
type OperationCredential = { name: string | undefined; names: CredentialNames; problem?: string | undefined };

/** Credentials of a server: the default that most operations use, and named credentials for the others. */
export type ServerCredentials = {
  /** Id of the default credential, as used in `answers`. */
  defaultId: string | undefined;
  getCredential: (operation: ApiOperation) => OperationCredential;
  /**
   * Returns the server's credential and the named credentials of these operations, with the scopes that they require.
   */
  toFields: (operations: readonly ApiOperation[]) => CredentialFields;
  questions: Question[];
};

/**
 * Credentials that are required together, the number of operations that they are sufficient for, and the number of
 * these operations that already have a tool.
 */
type CredentialOption = {
  id: string;
  schemes: readonly ApiScheme[];
  coveredCount: number;
  coveredExistingCount: number;
};

/** Input of a credential choice. `existing` lists operations that already have a tool with the server's credential. */
type CredentialChoice = Pick<AuthenticationSource, 'urlProblem' | 'takenNames'> & {
  choices: ImportChoices;
  existing: readonly ApiOperation[];
};

const manualCredentials = ['bearer', 'basic', 'none'];

/**
 * Chooses the server's credential: the answer to `credential`, or else the one that is sufficient for most operations
 * with a tool and, in a tie, for most operations. An operation that needs another one gets the first sufficient named
 * credential. If callers bring the server's credential, there are no named credentials.
 */
export function chooseCredentials(
  description: ApiDescription,
  { choices, existing, urlProblem, takenNames }: CredentialChoice,
): ServerCredentials {
  const { operations, schemes } = description;
  const options = collectOptions(description);
  const ranked = rankOptions(options, description, existing);
  const { answers = {} } = choices;
  const credentialAnswer = answers.credential;
  const described =
    ranked.find(({ id }) => id === credentialAnswer) ?? (credentialAnswer === undefined ? ranked[0] : undefined);
  const defaultSchemes = described?.schemes ?? createManualScheme(credentialAnswer, description);
  const isManual = credentialAnswer !== undefined && described === undefined;
  const buildFields = createFieldsBuilder({ answers, description, urlProblem, takenNames });
  const isOnlyCredential = isManual || choices.isOnlyCredential === true || hasLogin(defaultSchemes, buildFields);
  const otherOptions = isOnlyCredential
    ? []
    : ranked.filter((option) => option !== described && hasSameAddress(option.schemes, defaultSchemes));
  const namedOptions = otherOptions.slice(0, maxNamedCredentials);
  // Uses document order, so names do not depend on which credential comes first.
  const optionsInOrder = options.filter((option) => option === described || namedOptions.includes(option));
  for (const option of optionsInOrder) buildFields(option.schemes, [], true);
  const names = nameOptions(optionsInOrder);
  const listedParameters = findListedParameters(operations);
  const defaultCredential = prepareCredential(undefined, defaultSchemes, listedParameters);
  const namedCredentials = namedOptions.map((option) =>
    prepareCredential(names.get(option.id), option.schemes, listedParameters),
  );
  const credentials = [defaultCredential, ...namedCredentials];
  const noneCredential = prepareCredential(noCredential, [], listedParameters);
  const chooseCredential = (operation: ApiOperation): OperationCredential => {
    if (!isManual && defaultSchemes.length > 0 && isPublic(operation)) return noneCredential;
    const problems = credentials.map(
      (credential) =>
        findAddressProblem(operation, credential.schemes, description, choices) ??
        (isManual ? undefined : findMissingCredential(operation, credential.schemeNames, schemes)),
    );
    return credentials[problems.indexOf(undefined)] ?? { ...defaultCredential, problem: problems[0] };
  };
  const credentialByOperation = new Map(operations.map((operation) => [operation, chooseCredential(operation)]));
  const getCredential = (operation: ApiOperation) => credentialByOperation.get(operation) ?? defaultCredential;
  return {
    defaultId: described?.id ?? credentialAnswer,
    getCredential,
    toFields: (usingOperations) =>
      addNamedCredentials(buildFields(defaultSchemes, usingOperations, false), namedCredentials, {
        usingOperations,
        getCredential,
        buildFields,
      }),
    questions: toQuestions(ranked, credentialAnswer, defaultSchemes, description),
  };
}

/** Builds the configuration fields of one credential with the scopes of the operations that use it. */
type BuildFields = (
  schemes: readonly ApiScheme[],
  usingOperations: readonly ApiOperation[],
  isNamed: boolean,
) => CredentialFields;

/** Creates a builder that gives each secret one name, regardless of how many credentials include it. */
function createFieldsBuilder(source: Omit<AuthenticationSource, 'scopes' | 'secretNames'>): BuildFields {
  const secretNames = new Map<string, string>();
  // People log in only for the server's credential.
  const { client_id: _, client_secret: _secret, ...stored } = source.answers;
  return (schemes, usingOperations, isNamed) => {
    const scopes = collectScopes(usingOperations, new Set(schemes.map(({ name }) => name)));
    return buildAuthentication(schemes, { ...source, answers: isNamed ? stored : source.answers, scopes, secretNames });
  };
}

function hasLogin(schemes: readonly ApiScheme[], buildFields: BuildFields): boolean {
  return schemes.some(({ kind }) => kind === 'oauth2') && buildFields(schemes, [], false).oauth !== undefined;
}

/** Credential that operations can use, with its schemes. */
type ReadyCredential = OperationCredential & { schemes: readonly ApiScheme[]; schemeNames: ReadonlySet<string> };

function prepareCredential(
  name: string | undefined,
  schemes: readonly ApiScheme[],
  listedParameters: ReadonlySet<string>,
): ReadyCredential {
  return {
    name,
    schemes,
    schemeNames: new Set(schemes.map((scheme) => scheme.name)),
    names: toCredentialNames(schemes, listedParameters),
  };
}

type CredentialUsers = {
  usingOperations: readonly ApiOperation[];
  getCredential: ServerCredentials['getCredential'];
  buildFields: BuildFields;
};

/** Adds the credentials that the operations reference by name to the server's fields. */
function addNamedCredentials(
  fields: CredentialFields,
  namedCredentials: readonly ReadyCredential[],
  { usingOperations, getCredential, buildFields }: CredentialUsers,
) {
  const byName = Object.groupBy(usingOperations, (operation) => getCredential(operation).name ?? '');
  for (const { name = '', schemes } of namedCredentials) {
    const namedUsers = byName[name];
    if (!namedUsers) continue;
    const { authentication, secrets, personalFields, notes } = buildFields(schemes, namedUsers, true);
    if (authentication !== undefined) fields.credentials = { ...fields.credentials, [name]: authentication };
    fields.secrets.push(...secrets.filter((secret) => !fields.secrets.some((known) => known.name === secret.name)));
    const newFields = personalFields.filter(
      (field) => !fields.personalFields.some((known) => known.name === field.name),
    );
    fields.personalFields.push(...newFields.map((field) => ({ ...field, optional: true as const })));
    fields.notes.push(...notes.filter((note) => !fields.notes.includes(note)));
  }
  return fields;
}

/** Returns true if the document declares that an operation needs no credential. */
function isPublic({ security }: ApiOperation): boolean {
  return security.length > 0 && security.every(({ size }) => size === 0);
}

/** Returns a unique name for each option, derived from its schemes. */
function nameOptions(options: readonly CredentialOption[]): Map<string, string> {
  const names = new Map<string, string>();
  const takenNames = new Set<string>([noCredential]);
  for (const { id } of options) {
    const base =
      id
        .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
        .replace(/^[^A-Za-z]+/, '')
        .slice(0, 34) || 'credential';
    let name = base;
    for (let count = 2; takenNames.has(name); count++) name = `${base}_${count}`;
    takenNames.add(name);
    names.set(id, name);
  }
  return names;
}

/** Returns true if a reply to the `credential` question is allowed. */
export function isCredentialAnswer(description: ApiDescription, answer: string): boolean {
  return (
    manualCredentials.includes(answer) ||
    /^(?:header|query):[\w.~-]{1,64}$/.test(answer) ||
    collectOptions(description).some(({ id }) => id === answer)
  );
}

/** Returns the credential options in document order. */
function collectOptions({ operations, schemes }: ApiDescription): CredentialOption[] {
  const options = new Map<string, CredentialOption>();
  for (const operation of operations) {
    for (const requirement of operation.security) {
      const option = toOption(requirement, schemes);
      if (option && !options.has(option.id)) options.set(option.id, option);
    }
  }
  return [...options.values()];
}

function rankOptions(
  options: readonly CredentialOption[],
  description: ApiDescription,
  existing: readonly ApiOperation[],
): CredentialOption[] {
  const { operations, schemes } = description;
  for (const option of options) {
    const chosen = new Set(option.schemes.map(({ name }) => name));
    const isSufficient = (operation: ApiOperation) =>
      findMissingCredential(operation, chosen, schemes) === undefined &&
      findAddressProblem(operation, option.schemes, description, {}) === undefined;
    option.coveredCount = operations.filter(isSufficient).length;
    option.coveredExistingCount = existing.filter(isSufficient).length;
  }
  return options.toSorted(
    (a, b) =>
      b.coveredExistingCount - a.coveredExistingCount ||
      b.coveredCount - a.coveredCount ||
      a.schemes.length - b.schemes.length ||
      getRank(a) - getRank(b),
  );
}

/** Kinds of schemes, the easiest one for people first. A key in the query ranks after a key in a header. */
const ranks: readonly ApiScheme['kind'][] = ['bearer', 'key', 'basic', 'oauth2', 'aws', 'unsupported'];

function getRank({ schemes }: CredentialOption): number {
  return Math.max(
    0,
    ...schemes.map(({ kind, in: location }) => ranks.indexOf(kind) + (location === 'query' ? 0.5 : 0)),
  );
}

const maxCombinedSchemes = 4;

function toOption(requirement: ApiRequirement, schemes: ApiDescription['schemes']): CredentialOption | undefined {
  const named = [...requirement.keys()].map((name) => schemes.get(name));
  if (named.length === 0 || named.some((scheme) => scheme === undefined || scheme.kind === 'unsupported'))
    return undefined;
  const combined = removeAliases(named.filter((scheme) => scheme !== undefined));
  return combined.length > maxCombinedSchemes
    ? undefined
    : { id: combined.map(({ name }) => name).join('+'), schemes: combined, coveredCount: 0, coveredExistingCount: 0 };
}

/** Removes aliases: two schemes of one requirement that use the same header or parameter are one credential. */
function removeAliases(schemes: readonly ApiScheme[]): ApiScheme[] {
  const firstByTarget = new Map(schemes.toReversed().map((scheme) => [getTarget(scheme), scheme]));
  return schemes.filter((scheme) => firstByTarget.get(getTarget(scheme)) === scheme);
}

const foldedSignatureHeaders = new Set(signatureHeaders.map(foldHeaderName));

function getTarget({ kind, in: location, parameter = '' }: ApiScheme): string {
  if (kind !== 'key') return 'header authorization';
  // Headers that are part of an AWS signature belong to the signature.
  if (location === 'header' && foldedSignatureHeaders.has(foldHeaderName(parameter))) return 'header authorization';
  return `${location} ${location === 'header' ? foldHeaderName(parameter) : foldName(parameter)}`;
}

function getAddress(schemes: readonly ApiScheme[]): string | undefined {
  return schemes.find(({ address }) => address !== undefined)?.address;
}

/**
 * Returns true if two credentials belong to the same address. A secret may be sent to every host of its server, so a
 * credential found at another address cannot be added to it.
 */
function hasSameAddress(schemes: readonly ApiScheme[], otherSchemes: readonly ApiScheme[]): boolean {
  const [ownAddress, otherAddress] = [getAddress(schemes), getAddress(otherSchemes)];
  return (
    ownAddress === otherAddress ||
    (ownAddress !== undefined && otherAddress !== undefined && isSameAddress(ownAddress, otherAddress))
  );
}

/**
 * Returns the reason why an operation does not get the credential. Recorded requests go to any host, and their
 * credential is for one host only. An address that the person set for the whole server overrides this.
 */
function findAddressProblem(
  operation: ApiOperation,
  chosen: readonly ApiScheme[],
  description: ApiDescription,
  { server, answers }: ImportChoices,
): string | undefined {
  const address = getAddress(chosen);
  if (address === undefined || server !== undefined || answers?.server !== undefined) return undefined;
  const operationUrl = (operation.servers ?? description.servers)[0]?.url;
  if (operationUrl === undefined || isSameAddress(operationUrl, address)) return undefined;
  return 'its address differs from the address of the credential; create a separate server for it';
}

function findMissingCredential(
  operation: ApiOperation,
  chosen: ReadonlySet<string>,
  schemes: ApiDescription['schemes'],
): string | undefined {
  if (operation.security.length === 0) return undefined;
  const isSufficient = operation.security.some((requirement) => {
    const option = toOption(requirement, schemes);
    return requirement.size === 0 || option?.schemes.every(({ name }) => chosen.has(name)) === true;
  });
  if (isSufficient) return undefined;
  const needed = [...(operation.security[0]?.keys() ?? [])];
  const reason = needed.map((name) => schemes.get(name)?.reason).find((text) => text !== undefined);
  return reason ?? `it needs the credential ${quoteShort(needed.join('+'))}`;
}

/** Returns a credential that the document does not describe: `bearer`, `basic`, `header:NAME`, or `query:NAME`. */
function createManualScheme(answer: string | undefined, { format, servers }: ApiDescription): ApiScheme[] {
  const [kind = '', parameter] = (answer ?? '').split(':');
  const base = {
    name: 'token',
    ...(format !== 'OpenAPI' && format !== 'Swagger' && { address: servers[0]?.url }),
    description: '',
  };
  if (kind === 'bearer' || kind === 'basic') return [{ ...base, kind }];
  if ((kind !== 'header' && kind !== 'query') || parameter === undefined) return [];
  return [{ ...base, name: parameter, kind: 'key', in: kind, parameter }];
}

function toCredentialNames(schemes: readonly ApiScheme[], listedParameters: ReadonlySet<string>): CredentialNames {
  const listKeysIn = (location: string) =>
    schemes.flatMap((scheme) => (scheme.in === location && scheme.parameter !== undefined ? [scheme.parameter] : []));
  return {
    headers: new Set(listKeysIn('header').map(foldHeaderName)),
    cookies: new Set(listKeysIn('cookie')),
    query: toOwnedNames(listKeysIn('query')),
    isAws: schemes.some(({ kind }) => kind === 'aws'),
    listedParameters: schemes.length > 0 ? listedParameters : new Set(),
  };
}

const minListedOperations = 3;

/**
 * Returns parameters that are named and described like a credential. If most operations have such a parameter, it is
 * the server's credential, like `token` in the Slack API. Otherwise it is an argument, like the token that an operation
 * revokes.
 */
function findListedParameters(operations: readonly ApiOperation[]): Set<string> {
  const counts = new Map<string, number>();
  for (const { inputs } of operations) {
    const listed = inputs.filter(
      ({ name, location, description }) =>
        (location === 'header' || location === 'query') &&
        /^(?:x-)?(?:token|api[-_]?key|access[-_]?token|auth[-_]?token)$/i.test(name) &&
        /\b(?:auth\w*|access|bearer)[ _-]token|api[ _-]?key|\bauthori[sz]ation\b|your token/i.test(description),
    );
    for (const name of new Set(listed.map((input) => input.name.toLowerCase())))
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const isCommon = (count: number) => count >= minListedOperations && count * 2 > operations.length;
  return new Set([...counts].flatMap(([name, count]) => (isCommon(count) ? [name] : [])));
}

/** Matches the characters of a scope (RFC 6749, 3.3). */
const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/;

/** Returns only the scopes that the chosen operations require. */
function collectScopes(operations: readonly ApiOperation[], chosen: ReadonlySet<string>): string[] {
  const scopes = new Set<string>();
  for (const { security } of operations) {
    const requirement = security.find((alternative) => [...alternative.keys()].some((name) => chosen.has(name)));
    for (const [name, requiredScopes] of requirement ?? [])
      if (chosen.has(name)) for (const scope of requiredScopes) scopes.add(scope);
  }
  return [...scopes].filter((scope) => scopePattern.test(scope) && !scope.includes('{{')).slice(0, 100);
}

function toQuestions(
  options: readonly CredentialOption[],
  answer: string | undefined,
  schemes: readonly ApiScheme[],
  description: ApiDescription,
): Question[] {
  const total = description.operations.length;
  const listed = options.slice(0, 10).map(({ id, schemes: combined, coveredCount }) => ({
    value: id,
    meaning: `${combined.map(describeScheme).join(' and ')}; sufficient for ${coveredCount} of ${total} operations`,
  }));
  const hasLogins = schemes.some(
    ({ kind, authorizationUrl, tokenUrl }) => kind === 'oauth2' && authorizationUrl && tokenUrl,
  );
  const logins = hasLogins ? loginQuestions : [];
  if (answer !== undefined || options.length === 1) return logins;
  if (options.length === 0) return [unknownCredentialQuestion];
  const question =
    'Which credential should the server use? Tools that need another credential reference their own, if possible.';
  return [{ name: 'credential', required: false, question, options: listed, assumed: options[0]?.id }, ...logins];
}

const loginQuestions: Question[] = [
  {
    name: 'client_id',
    required: false,
    question:
      'Client ID of your OAuth application at the provider. With client_id and client_secret, people log in. Without them, one access token is stored.',
  },
  { name: 'client_secret', required: false, question: 'Client secret of your OAuth application.' },
];

const unknownCredentialQuestion: Question = {
  name: 'credential',
  required: false,
  question: 'The document describes no usable credential. Which credential does the API need?',
  options: [
    { value: 'bearer', meaning: 'a token in the Authorization header' },
    { value: 'basic', meaning: 'username and password' },
    { value: 'header:NAME', meaning: 'a key in a header' },
    { value: 'query:NAME', meaning: 'a key in the query' },
    { value: 'none', meaning: 'no credential' },
  ],
  assumed: 'none',
};

function describeScheme(scheme: ApiScheme): string {
  const text = toPlainText(scheme.description, 80);
  const kinds = {
    bearer: 'a bearer token',
    basic: 'username and password',
    key: `a key in the ${scheme.in ?? 'header'} ${quoteShort(scheme.parameter ?? '')}`,
    oauth2: scheme.authorizationUrl ? 'a user login (OAuth)' : 'an access token (OAuth)',
    aws: 'an AWS signature',
    unsupported: 'unsupported',
  };
  return text === '' ? kinds[scheme.kind] : `${kinds[scheme.kind]} (${text})`;
}
