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

/** A question of the plan. `required` ones must be answered before a server can be made. */
export type Question = {
  name: string;
  question: string;
  required: boolean;
  options?: { value: string; meaning: string }[];
  /** The answer that is taken without another one. */
  assumed?: string;
};
