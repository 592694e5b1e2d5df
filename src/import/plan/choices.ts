import { didYouMean, newGuesses } from '../../domain/problems.ts';
import { invalid, type Problem } from '../../errors.ts';
import type { ApiDescription } from '../model.ts';
import { isCredentialAnswer } from './credentials.ts';
import { isSecret, variableName } from './server-address.ts';

/** What a person or an agent decides about an import. Everything is optional. */
export type ImportChoices = {
  /** Tags, operation ids, names of tools, `METHOD /path` or `/path`, with `*` for any text. */
  include?: readonly string[] | undefined;
  exclude?: readonly string[] | undefined;
  /** What agents should do with the server, in a sentence; the proposal is what fits it. */
  for?: string | undefined;
  /** Only operations that read. */
  readOnly?: boolean | undefined;
  /** Deprecated operations as well. */
  deprecated?: boolean | undefined;
  /** Tools with large answers keep only the fields that the plan proposes. */
  fields?: boolean | undefined;
  /** The address that replaces the one in the document. */
  server?: string | undefined;
  /** Answers to the questions of the plan, by name. */
  answers?: Readonly<Record<string, string>> | undefined;
  /** The address that the document was read from; relative servers are below it. */
  documentUrl?: string | undefined;
  /** Keys of the operations whose tool has the credential of the server by now: it goes on with that of most of them. */
  present?: ReadonlySet<string> | undefined;
  /** Whether callers bring the credential of the server, so that its tools can name no other. */
  isAlone?: boolean | undefined;
  name?: string | undefined;
  slug?: string | undefined;
};

const always = ['server', 'credential', 'client_id', 'client_secret', 'region', 'service'];

/** Names of everything that a document may ask. */
export function questionsOf(description: ApiDescription): string[] {
  return [...new Set([...always, ...variablesOf(description, false)])];
}

/**
 * Names of the variables of all addresses: of those that are answered, or of those whose value is a secret of the server,
 * because an answer would be stored as it is.
 */
function variablesOf({ servers, operations }: ApiDescription, areSecret: boolean): string[] {
  const all = [...servers, ...operations.flatMap((operation) => operation.servers ?? [])];
  return all.flatMap(({ url, variables }) =>
    variables.flatMap(({ name }) => (isSecret(name, url) === areSecret ? [name, variableName(name)] : [])),
  );
}

/** Checks that every answer belongs to a question of the document. @throws AppError invalid */
export function checkAnswers(description: ApiDescription, { answers = {}, server }: ImportChoices): void {
  const known = questionsOf(description);
  const secrets = new Set(variablesOf(description, true));
  const problems: Problem[] = [];
  const guesses = newGuesses();
  for (const [name, value] of Object.entries(answers)) {
    const path = `answers.${name.slice(0, 64)}`;
    if (!known.includes(name) && secrets.has(name)) {
      const secret = variableName(name).toUpperCase();
      const message = `is a secret, and answers are stored as they are; leave it out, and set the secret ${secret} of the server once it exists`;
      problems.push({ path, message });
    } else if (!known.includes(name)) {
      problems.push({
        path,
        message: `the document asks no such question${didYouMean(name, known, guesses) || `; allowed: ${known.slice(0, 20).join(', ')}`}`,
      });
    } else if (name === 'credential' && !isCredentialAnswer(description, value)) {
      const described = [...description.schemes.keys()].slice(0, 10);
      const allowed = [...described, 'bearer', 'basic', 'header:NAME', 'query:NAME', 'none'].join(', ');
      problems.push({
        path,
        message: `found ${JSON.stringify(value.slice(0, 60))}; allowed: ${allowed}, or several of the document joined by +`,
      });
    }
  }
  const address = server ?? answers.server;
  if (address !== undefined && !/^\d{1,3}$/.test(address) && !/^https?:\/\/[^/\s]+/i.test(address)) {
    problems.push({
      path: 'server',
      message: `found ${JSON.stringify(address.slice(0, 100))}; allowed: an address such as https://api.example.com/v1, or the number of a server of the document`,
    });
  }
  if (problems.length > 0) throw invalid(problems, 'The document was not imported');
}
