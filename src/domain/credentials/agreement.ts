/**
 * What a person agreed to at a login: the hash of the server's agreement, followed by the view that the login is limited
 * to. A hash has no slash.
 */
export function agreementFor(hash: string, view: string | undefined): string {
  return view === undefined ? hash : `${hash}/${view}`;
}

/** The view that an agreement is limited to; undefined where it is for the whole server. */
export function viewOfAgreement(agreement: string): string | undefined {
  const slash = agreement.indexOf('/');
  return slash < 0 ? undefined : agreement.slice(slash + 1);
}

/** Whether an agreement is good at a server, or at a view of it: a view is a part of what the whole server offers. */
export function isAgreed(
  agreement: string,
  { agreement: hash, view }: { agreement: string; view?: string | undefined },
) {
  return agreement === hash || (view !== undefined && agreement === agreementFor(hash, view));
}
