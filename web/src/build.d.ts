/** Where the documentation of this build is; see `vite.config.ts`. */
declare const __DOCUMENTATION__: { site?: string; repository?: string };
