import { didYouMean, newGuesses } from '../../domain/problems.ts';
import { invalid, type Problem } from '../../errors.ts';
import type { ApiDescription } from '../model.ts';
import { isCredentialAnswer } from './credentials.ts';
import { isSecret, variableName } from './server-address.ts';

/** Decisions of a person or an agent about an import. All are optional. */
export type ImportChoices = {
  /** Tags, operation IDs, tool names, `METHOD /path`, or `/path`; `*` matches any text. */
  include?: readonly string[] | undefined;
  exclude?: readonly string[] | undefined;
  /** One sentence about what agents should do with the server. The proposal is chosen to match it. */
  for?: string | undefined;
  /** Import only operations that read. */
  readOnly?: boolean | undefined;
  /** Import deprecated operations as well. */
  deprecated?: boolean | undefined;
  /** Let tools with large responses return only the fields that the plan proposes. */
  fields?: boolean | undefined;
  /** Address that replaces the one in the document. */
  server?: string | undefined;
  /** Replies to the plan's questions, by question name. */
  answers?: Readonly<Record<string, string>> | undefined;
  /** Address that the document was read from; relative server URLs are resolved against it. */
  documentUrl?: string | undefined;
  /**
   * Keys of the operations whose tool already uses the server's credential. The server keeps the credential that most
   * of them use.
   */
  present?: ReadonlySet<string> | undefined;
  /** True if callers bring the server's credential. Its tools can then name no other credential. */
  isAlone?: boolean | undefined;
  name?: string | undefined;
  slug?: string | undefined;
};

const always = ['server', 'credential', 'client_id', 'client_secret', 'region', 'service'];

/** Returns the names of all questions that a document may ask. */
export function questionsOf(description: ApiDescription): string[] {
  return [...new Set([...always, ...variablesOf(description, false)])];
}

/**
 * Returns the names of variables in all addresses: either those that can be answered, or those whose value is a secret
 * of the server. A secret cannot be an answer, because answers are stored in plain text.
 */
function variablesOf({ servers, operations }: ApiDescription, areSecret: boolean): string[] {
  const all = [...servers, ...operations.flatMap((operation) => operation.servers ?? [])];
  return all.flatMap(({ url, variables }) =>
    variables.flatMap(({ name }) => (isSecret(name, url) === areSecret ? [name, variableName(name)] : [])),
  );
}

/** Rejects answers that do not belong to a question of the document. @throws AppError invalid */
export function checkAnswers(description: ApiDescription, { answers = {}, server }: ImportChoices): void {
  const known = questionsOf(description);
  const secrets = new Set(variablesOf(description, true));
  const problems: Problem[] = [];
  const guesses = newGuesses();
  for (const [name, value] of Object.entries(answers)) {
    const path = `answers.${name.slice(0, 64)}`;
    if (!known.includes(name) && secrets.has(name)) {
      const secret = variableName(name).toUpperCase();
      const message = `is a secret, but answers are stored in plain text; remove it, and set the secret ${secret} after creating the server`;
      problems.push({ path, message });
    } else if (!known.includes(name)) {
      problems.push({
        path,
        message: `the document has no such question${didYouMean(name, known, guesses) || `; allowed: ${known.slice(0, 20).join(', ')}`}`,
      });
    } else if (name === 'credential' && !isCredentialAnswer(description, value)) {
      const described = [...description.schemes.keys()].slice(0, 10);
      const allowed = [...described, 'bearer', 'basic', 'header:NAME', 'query:NAME', 'none'].join(', ');
      problems.push({
        path,
        message: `found ${JSON.stringify(value.slice(0, 60))}; allowed: ${allowed}, or several credentials of the document joined by +`,
      });
    }
  }
  const address = server ?? answers.server;
  if (address !== undefined && !/^\d{1,3}$/.test(address) && !/^https?:\/\/[^/\s]+/i.test(address)) {
    problems.push({
      path: 'server',
      message: `found ${JSON.stringify(address.slice(0, 100))}; allowed: a URL such as https://api.example.com/v1, or the number of a server in the document`,
    });
  }
  if (problems.length > 0) throw invalid(problems, 'The document was not imported');
}
