import type { Fields, Verdict } from './check.ts';
import type { WebClient } from './web.ts';

/** A login that a person finished, as its client got it. */
export type FinishedLogin = {
  clientId: string;
  tokenEndpoint: string;
  accessToken: string;
  refreshToken: string | undefined;
  /** Ends the login by one of its tokens; undefined where the server offers no end. @throws AppError */
  end: ((token: string) => Promise<void>) | undefined;
};

/** One call of a tool. */
export type CallToTry = {
  tool: string;
  arguments: Fields;
  /** Whether a tool may be called that is not marked as read-only. */
  mayChange: () => Promise<boolean>;
};

export type ExamineOptions = {
  web: WebClient;
  /** A token or API key that the server accepts; without it only what comes before the login can be examined. */
  token?: string | undefined;
  /** Whether clients may be registered; each registration may be stored by the server. */
  registers: boolean;
  /** Lets a person log in, where the server wants that and there is no token. @throws AppError */
  logIn?: (() => Promise<FinishedLogin>) | undefined;
  call?: CallToTry | undefined;
};

export type ReportCheck = (id: string, title: string, verdict: Verdict) => Verdict;
export type Examination = ExamineOptions & { address: string; report: ReportCheck };
