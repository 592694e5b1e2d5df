/** Location of the documentation for this build; see `vite.config.ts`. */
declare const __DOCUMENTATION__: { site?: string; repository?: string };
