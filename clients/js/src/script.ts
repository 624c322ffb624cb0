/** For a script tag: everything of the main entry under the name `discreet`. */

import { poll, ReportError, survey } from "./index.js";

Object.assign(globalThis, { discreet: { poll, ReportError, survey } });
