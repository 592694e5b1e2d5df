/** The variable that holds a credential in what is copied, and what it is. */
export const credentialVariables = {
  api_key: { name: 'TOOLHOST_KEY', about: 'TOOLHOST_KEY is an API key of the workspace with the scope call' },
  caller_token: { name: 'API_TOKEN', about: "API_TOKEN is the caller's own token of the API" },
  login: { name: 'ACCESS_TOKEN', about: 'ACCESS_TOKEN is an access token that a client got by the login' },
} as const;
