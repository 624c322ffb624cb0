"""Views of the catalog that depend on the declared tables or on who asks, written for DuckDB.

`pg` and `info` hold what statements name; `kept` holds rows of PostgreSQL's own that a view adds to.
"""

from __future__ import annotations

WHO = "getvariable('who')"
_ROLE = """
    SELECT getvariable('who') AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole,
        false AS rolcreatedb, true AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
        '********' AS rolpassword, NULL AS rolvaliduntil, false AS rolbypassrls, NULL AS rolconfig, 10 AS oid
"""
_YES = "CASE WHEN {} THEN 'YES' ELSE 'NO' END"
_SEEN = "c.relnamespace = n.oid AND c.relkind IN ('r', 'v', 'f', 'p') AND n.nspname NOT LIKE 'pg_toast%'"
_TYPE_NAME = "our_format_type_2(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, NULL)"

VIEWS: dict[tuple[str, str], str] = {
    ("pg", "pg_roles"): f"{_ROLE} UNION ALL SELECT * FROM kept.pg_roles",
    ("pg", "pg_user"): """
        SELECT getvariable('who') AS usename, 10 AS usesysid, false AS usecreatedb, false AS usesuper, false AS userepl,
            false AS usebypassrls, '********' AS passwd, NULL AS valuntil, NULL AS useconfig
    """,
    ("pg", "pg_group"): """
        SELECT rolname AS groname, oid AS grosysid,
            coalesce((SELECT list(m.member) FROM pg.pg_auth_members m WHERE m.roleid = r.oid), [])
        FROM pg.pg_roles r WHERE NOT rolcanlogin
    """,
    ("pg", "pg_settings"): """
        SELECT name, our_setting(name), unit, category, short_desc, extra_desc, context, vartype, source, min_val,
            max_val, enumvals, boot_val, reset_val, sourcefile, sourceline, pending_restart
        FROM kept.pg_settings
    """,
    ("pg", "pg_tables"): """
        SELECT n.nspname, c.relname, our_pg_get_userbyid_1(c.relowner), t.spcname, c.relhasindex, c.relhasrules,
            c.relhastriggers, c.relrowsecurity
        FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg.pg_tablespace t ON t.oid = c.reltablespace
        WHERE c.relkind IN ('r', 'p')
    """,
    ("pg", "pg_views"): """
        SELECT n.nspname, c.relname, our_pg_get_userbyid_1(c.relowner), NULL
        FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'
    """,
    ("pg", "pg_indexes"): """
        SELECT n.nspname, c.relname, i.relname, t.spcname, our_pg_get_indexdef_1(i.oid)
        FROM pg.pg_index x JOIN pg.pg_class c ON c.oid = x.indrelid JOIN pg.pg_class i ON i.oid = x.indexrelid
            LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg.pg_tablespace t ON t.oid = i.reltablespace
        WHERE c.relkind IN ('r', 'm', 'p') AND i.relkind IN ('i', 'I')
    """,
    ("info", "information_schema_catalog_name"): "SELECT our_current_database_0()",
    ("info", "enabled_roles"): "SELECT getvariable('who') UNION ALL SELECT 'pg_database_owner'",
    ("info", "applicable_roles"): "SELECT getvariable('who'), 'pg_database_owner', 'NO'",
    ("info", "schemata"): """
        SELECT our_current_database_0(), n.nspname, our_pg_get_userbyid_1(n.nspowner), NULL, NULL, NULL, NULL
        FROM pg.pg_namespace n
    """,
    ("info", "tables"): f"""
        SELECT our_current_database_0(), n.nspname, c.relname,
            CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN' ELSE 'BASE TABLE' END,
            NULL, NULL, NULL, NULL, NULL,
            {_YES.format("c.relkind IN ('r', 'p') OR our_is_updatable(c.oid)")}, 'NO', NULL
        FROM pg.pg_namespace n, pg.pg_class c WHERE {_SEEN}
    """,
    ("info", "views"): f"""
        SELECT our_current_database_0(), n.nspname, c.relname, NULL, 'NONE', {_YES.format("our_is_updatable(c.oid)")},
            {_YES.format("our_is_updatable(c.oid)")}, 'NO', 'NO', 'NO'
        FROM pg.pg_namespace n, pg.pg_class c WHERE {_SEEN} AND c.relkind = 'v'
    """,
    ("info", "table_privileges"): f"""
        SELECT {WHO}, {WHO}, our_current_database_0(), n.nspname, c.relname, 'SELECT', 'YES', 'YES'
        FROM pg.pg_class c, pg.pg_namespace n WHERE {_SEEN} AND n.nspname = 'public'
    """,
    ("info", "role_table_grants"): "SELECT * FROM info.table_privileges",
    ("info", "column_privileges"): f"""
        SELECT {WHO}, {WHO}, our_current_database_0(), n.nspname, c.relname, a.attname, 'SELECT', 'YES'
        FROM pg.pg_class c, pg.pg_namespace n, pg.pg_attribute a
        WHERE {_SEEN} AND n.nspname = 'public' AND a.attrelid = c.oid AND a.attnum > 0
    """,
    ("info", "role_column_grants"): "SELECT * FROM info.column_privileges",
    ("info", "columns"): f"""
        SELECT our_current_database_0(), n.nspname, c.relname, a.attname, a.attnum,
            NULL, {_YES.format("NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull))")},
            CASE WHEN b.typelem <> 0 AND b.typlen = -1 THEN 'ARRAY'
                WHEN bn.nspname = 'pg_catalog' THEN {_TYPE_NAME} ELSE 'USER-DEFINED' END,
            NULL, CASE WHEN b.oid IN (25, 1042, 1043) THEN 1073741824 END,
            CASE b.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 END,
            CASE WHEN b.oid IN (20, 21, 23, 700, 701) THEN 2 WHEN b.oid = 1700 THEN 10 END,
            CASE WHEN b.oid IN (20, 21, 23) THEN 0 END,
            CASE WHEN b.oid = 1082 THEN 0 WHEN b.oid IN (1083, 1114, 1184, 1266, 1186)
                THEN CASE WHEN t.typtype = 'd' AND t.typtypmod >= 0 THEN t.typtypmod ELSE 6 END END,
            NULL, NULL, NULL, NULL, NULL,
            CASE WHEN co.oid IS NOT NULL AND co.collname <> 'default' THEN our_current_database_0() END,
            CASE WHEN co.collname <> 'default' THEN 'pg_catalog' END,
            CASE WHEN co.collname <> 'default' THEN co.collname END,
            CASE WHEN t.typtype = 'd' THEN our_current_database_0() END,
            CASE WHEN t.typtype = 'd' THEN tn.nspname END, CASE WHEN t.typtype = 'd' THEN t.typname END,
            our_current_database_0(), bn.nspname, b.typname, NULL, NULL, NULL, NULL, a.attnum::VARCHAR, 'NO', 'NO',
            NULL, NULL, NULL, NULL, NULL, 'NO', 'NEVER', NULL,
            {_YES.format("c.relkind IN ('r', 'p') OR our_is_updatable(c.oid)")}
        FROM pg.pg_attribute a JOIN pg.pg_class c ON a.attrelid = c.oid JOIN pg.pg_namespace n ON n.oid = c.relnamespace
            JOIN pg.pg_type t ON t.oid = a.atttypid JOIN pg.pg_namespace tn ON tn.oid = t.typnamespace
            JOIN pg.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
            JOIN pg.pg_namespace bn ON bn.oid = b.typnamespace
            LEFT JOIN pg.pg_collation co ON co.oid = a.attcollation
        WHERE a.attnum > 0 AND NOT a.attisdropped AND {_SEEN}
    """,
}
"""Views by schema and name. Their columns are named by the relation that they stand for."""
